import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { folderOf, openLocal } from './local.ts'

const loader = ['--import', 'tsx']
const options = [...process.execArgv]
// The programs that are started here are sources.
beforeAll(() => void process.execArgv.push(...loader))
afterAll(() => void process.execArgv.splice(0, Number.POSITIVE_INFINITY, ...options))

const passwordFiles = (): readonly string[] =>
  readdirSync('/tmp').filter(name => name.startsWith('pg-password-'))

it('stopped while its server starts leaves no server, no folder and no file with its password', async () => {
  const out = join(mkdtempSync(join(tmpdir(), 'espalier-local-')), 'run')
  const before = passwordFiles()
  const stop = new AbortController()
  const opening = openLocal(2, { out, tell: () => {}, signal: stop.signal })
  const stopped = expect(opening).rejects.toThrow('interrupted')
  // The folder in which the data is made: from then on there is a file with the password.
  await expect.poll(() => existsSync(join(folderOf(out), 'making')), { timeout: 20_000 }).toBe(true)
  stop.abort(new Error('interrupted'))
  await stopped
  expect(existsSync(folderOf(out))).toBe(false)
  expect(passwordFiles().filter(name => !before.includes(name))).toEqual([])
}, 60_000)

describe('a worker', () => {
  const program = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

  /** A worker whose database accepts connections and never answers. */
  async function startWorker() {
    const database = createServer(socket => socket.on('error', () => undefined))
    database.listen(0, '127.0.0.1')
    await once(database, 'listening')
    const { port } = database.address() as { readonly port: number }
    const address = `postgres://espalier@127.0.0.1:${port}/postgres`
    const words = [...loader, program, 'worker', '--cluster', address]
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    return { child, database, ended: once(child, 'exit') }
  }

  it('whose starter is gone before it is ready ends by itself', async () => {
    const { child, database, ended } = await startWorker()
    child.disconnect()
    expect(await ended).toEqual([0, null])
    database.close()
  }, 60_000)

  it('that waits for its database ends at once on SIGTERM', async () => {
    const { child, database, ended } = await startWorker()
    await once(database, 'connection')
    const began = performance.now()
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(performance.now() - began).toBeLessThan(5000)
    database.close()
  }, 60_000)
})
