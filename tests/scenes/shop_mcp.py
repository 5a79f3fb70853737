"""An MCP server whose tool gets SQL, for the scenes in which a permission shows the arguments of a call."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")


@server.tool()
def query(sql: str) -> str:
    """Run this SQL."""
    return f"ran {sql}"


if __name__ == "__main__":
    server.run("stdio")
