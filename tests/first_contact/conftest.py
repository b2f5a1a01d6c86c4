"""The scripts are run as a new user runs them, and not collected."""

collect_ignore = ["ragas_without_labels.py", "llama_index_expected_ids.py", "langchain_agent.py"]
