"""How a server is reached: transports, JSON-RPC peers, connections, and supervision."""
