"""How a server is reached: wires, links, connections, and the supervision of each server."""
