"""What pages show, read from the history once: values without a database behind them."""
