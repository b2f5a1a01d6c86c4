"""What hangs on the monitor of live retrieval: calls as a tree, alarms, traces, tool selection."""
