import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { openDatabase } from './database.ts'

/** Messages of PostgreSQL's protocol: logged in, ready; a command is complete, ready. */
const ready = Buffer.from('5a0000000549', 'hex')
const loggedIn = Buffer.concat([Buffer.from('520000000800000000', 'hex'), ready])
const complete = Buffer.concat([Buffer.from('430000000d53454c4543542030', 'hex'), Buffer.from([0])])
const done = Buffer.concat([complete, ready])

/** A server that answers so many questions and then says nothing more. */
async function openMute(answers: number) {
  let left = answers
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      if (left <= 0) return
      socket.write(loggedIn)
      socket.on('data', () => left-- > 0 && socket.write(done))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    config: { host: '127.0.0.1', port, user: 'espalier', database: 'postgres' },
    /** Breaks all connections and refuses new ones. */
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Seconds until something fails, and how. */
async function failure(work: Promise<unknown>): Promise<{ seconds: number; message: string }> {
  const began = performance.now()
  const message = await work.then(
    () => 'it did not fail',
    (error: Error) => error.message,
  )
  return { seconds: (performance.now() - began) / 1000, message }
}

it('is not waited for any more once whoever waits is stopped', async () => {
  const server = await openMute(1)
  const stop = new AbortController()
  const told: string[] = []
  const tell = (line: string): void => void told.push(line)
  await using database = await openDatabase(server.config, { signal: stop.signal, tell })
  await server[Symbol.asyncDispose]()
  const waiting = database.query('SELECT 2')
  await expect.poll(() => told).toEqual([expect.stringMatching(/waiting for it$/)])
  stop.abort(new Error('interrupted'))
  expect((await failure(waiting)).seconds).toBeLessThan(1)
  expect(await failure(database.query('SELECT 3'))).toMatchObject({
    message: 'PostgreSQL: the database is given up',
  })
})

it('that is stopped before its first answer is given up at once', async () => {
  await using server = await openMute(0)
  for (const signal of [AbortSignal.abort(), AbortSignal.timeout(300)]) {
    expect((await failure(openDatabase(server.config, { signal }))).seconds).toBeLessThan(2)
  }
})

it('that accepts a question and says nothing keeps whoever was stopped for seconds, not minutes', async () => {
  await using server = await openMute(1)
  const stop = new AbortController()
  const database = await openDatabase(server.config, { signal: stop.signal })
  const asked = failure(database.query('SELECT 2'))
  stop.abort(new Error('interrupted'))
  expect((await asked).seconds).toBeLessThan(9)
  const began = performance.now()
  await database[Symbol.asyncDispose]()
  expect(performance.now() - began).toBeLessThan(4000)
}, 20_000)
