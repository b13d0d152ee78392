"""How clients reach a server: transport, TLS and protocol."""
