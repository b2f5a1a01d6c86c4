"""`python -m rag_selectivity`: the same as the console script `rag-selectivity`."""

from rag_selectivity.cli import main

if __name__ == "__main__":
    main()
