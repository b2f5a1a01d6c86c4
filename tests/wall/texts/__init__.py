"""Scenarios whose texts are stored: what people read. Few, since each change of a sentence changes them."""
