"""The worked example: raw sales into a fact table by days. Copy this folder to begin with a table of your own."""
