import { expect, it, vi } from 'vitest'

vi.mock('@modelcontextprotocol/sdk/client/index.js', () => {
  throw new Error('Cannot find package')
})

it('names the line that installs the package it needs', async () => {
  const { openMcpTools } = await import('./mcp.ts')
  const signal = new AbortController().signal
  await expect(openMcpTools({ url: 'http://localhost:1/mcp' }, { signal })).rejects.toThrow(
    'An MCP server needs a package that is not installed: npm i @modelcontextprotocol/sdk',
  )
})
