"""How clients reach a server: transport, TLS, authentication, protocol, and connections that only listen."""
