"""How a server is reached: wires, peers, connections, and the supervision of each server."""
