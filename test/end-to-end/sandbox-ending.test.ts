import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findWalls } from '../../src/worlds/sandboxes/walls.ts'
import { serveDaytona } from '../servers/vendors/daytona.ts'
import { serveE2b } from '../servers/vendors/e2b.ts'
import { scratch, start } from './cli.ts'

const model = join(import.meta.dirname, '../../models/chatml-bytes')

/** A server of a model that says who it is and answers nothing more. */
async function serveSilence() {
  const server = createServer((request, response) => {
    if (request.method === 'GET') response.end('{"data":[{"id":"m"}]}')
    else server.emit('asked')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { server, url: `http://127.0.0.1:${port}/v1` }
}

const vendors = [
  ['e2b', serveE2b, (url: string) => `e2b:api=${url},machines=${url}`],
  ['daytona', serveDaytona, (url: string) => `daytona:api=${url}`],
] as const

describe.runIf(findWalls().by !== undefined)('Ctrl-C', () => {
  it.each(vendors)('ends every machine of %s that a roll has started', async (_, serve, named) => {
    await using vendor = await serve()
    const { server, url } = await serveSilence()
    const asked = once(server, 'asked')
    const words = [
      ...['roll', '--environment', 'repair', '--tasks', '1', '--group', '2', '--out', 'run'],
      ...['--policy', `openai:${url}`, '--served-model', 'm', '--model', model],
      ...['--sandbox', `${named(vendor.url)},key-variable=VENDOR_KEY`],
    ]
    const variables = { VENDOR_KEY: 'key' }
    const { child, finished } = start(words, { folder: scratch(), variables })
    await Promise.race([asked, finished])
    expect(vendor.fleet.machines.size).toBeGreaterThan(0)
    child.kill('SIGINT')
    const { stderr } = await finished
    expect([...vendor.fleet.machines]).toEqual([])
    expect(stderr).not.toContain('key')
    server.closeAllConnections()
    server.close()
  })
})
