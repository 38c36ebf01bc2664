import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { scratch } from '../../../../test/end-to-end/cli.ts'
import { plainTree } from '../../../../test/plain-tree.ts'
import { decodeFrame, encodeFrame } from '../frame.ts'
import { costOfTree } from '../journal-index.ts'
import { treeToRunFrame } from '../tree-frame.ts'
import { isPointer, type Pointer, pointerTo } from './pointer.ts'
import { sign } from './sign.ts'
import { follow, followNow, openStorage } from './storage.ts'

/** A real server is tried by `AWS_ENDPOINT_URL=http://127.0.0.1:5000 npx vitest run src/run/store/segments`. */
const given = process.env.AWS_ENDPOINT_URL

/** The server of this test is a process: one that stands still could not answer itself. */
async function startServer(): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const program =
    'import("./test/servers/s3.ts").then(({ openS3 }) => openS3()).then(s => process.send(s.url))'
  const child = spawn(process.execPath, ['--import', 'tsx', '-e', program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [url] = (await once(child, 'message')) as [string]
  return { url, child }
}

describe('the storage of segments', () => {
  let child: ChildProcess | undefined
  beforeAll(async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'key')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'a secret of this test')
    if (given === undefined) {
      const server = await startServer()
      child = server.child
      vi.stubEnv('AWS_ENDPOINT_URL', server.url)
    } else await fetch(`${given}/segments`, { method: 'PUT' })
  })
  afterAll(() => {
    vi.unstubAllEnvs()
    child?.kill()
  })

  it.each([
    ['a folder', () => scratch()],
    ['a bucket', () => 's3://segments/of/tests'],
  ])('[P1] gives back from %s what was appended, by place, at once and later', async (_, where) => {
    const storage = await openStorage(where())
    const segment = storage.write('run/one')
    const trees = [plainTree({ calls: [{ tool: 'look' }] }), plainTree({})]
    const frames = trees.map(tree => encodeFrame(treeToRunFrame(tree)))
    const writing = frames.map(frame => segment.append(frame))
    await segment[Symbol.asyncDispose]()
    const places = await Promise.all(writing)
    for (const [index, tree] of trees.entries()) {
      const bytes = pointerTo(costOfTree(tree), places[index]!, frames[index]!)
      expect([isPointer(bytes), isPointer(frames[index]!)]).toEqual([true, false])
      const pointer = decodeFrame(bytes, 0).header as Pointer
      expect((await follow(storage, pointer)).equals(frames[index]!)).toBe(true)
      expect(followNow(storage, pointer).equals(frames[index]!)).toBe(true)
      const wrong = { ...pointer, offset: pointer.offset + 8 }
      await expect(follow(storage, wrong)).rejects.toThrow(/is not at byte|shorter/)
      const outside = { ...pointer, segment: '../../etc/passwd' }
      await expect(follow(storage, outside)).rejects.toThrow('the place of tree')
    }
  })

  it('[H7] follows no link and waits for no pipe in the folder of somebody else', async () => {
    const folder = scratch()
    mkdirSync(join(folder, 'theirs'))
    symlinkSync('/etc/hostname', join(folder, 'theirs/link.frames'))
    spawnSync('mkfifo', [join(folder, 'theirs/pipe.frames')])
    const storage = await openStorage(folder)
    for (const [name, odd] of [
      ['link', 'is a link'],
      ['pipe', 'is a named pipe'],
    ] as const) {
      const segment = `theirs/${name}.frames`
      await expect(storage.read(segment, 0, 8)).rejects.toThrow(odd)
      expect(() => storage.readNow(segment, 0, 8)).toThrow(odd)
    }
  })

  it.skipIf(given)('[H4] shows its credentials to no server that a bucket leads to', async () => {
    const seen: object[] = []
    const other = createServer(({ headers }, response) => {
      seen.push(headers)
      response.writeHead(206).end('12345')
    })
    const leading = createServer((_, response) => {
      const { port } = other.address() as AddressInfo
      response.writeHead(307, { location: `http://localhost:${port}/` }).end()
    })
    for (const server of [other, leading]) await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = process.env.AWS_ENDPOINT_URL!
    const { port } = leading.address() as AddressInfo
    vi.stubEnv('AWS_ENDPOINT_URL', `http://127.0.0.1:${port}`)
    const bucket = await openStorage('s3://elsewhere')
    await expect(bucket.read('run/one.frames', 0, 5)).rejects.toThrow('could not be reached')
    expect(seen).toEqual([])
    vi.stubEnv('AWS_ENDPOINT_URL', `http://127.0.0.1:${(other.address() as AddressInfo).port}`)
    const longer = await openStorage('s3://longer')
    await expect(longer.read('run/one.frames', 0, 4)).rejects.toThrow('more than 4 bytes')
    vi.stubEnv('AWS_ENDPOINT_URL', url)
    for (const server of [other, leading]) server.close()
  })

  it('[O1] says what is wrong with an address', async () => {
    await expect(openStorage('gs://bucket')).rejects.toThrow('name a folder, or s3://BUCKET/PREFIX')
    await expect(openStorage('s3://')).rejects.toThrow('named as s3://BUCKET/PREFIX')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', '')
    await expect(openStorage('s3://bucket/prefix')).rejects.toThrow('AWS_SECRET_ACCESS_KEY must be')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'a secret of this test')
  })

  it('signs as AWS’s documentation does', () => {
    const credentials = {
      key: 'AKIAIOSFODNN7EXAMPLE',
      secret: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
    }
    const url = new URL('https://examplebucket.s3.amazonaws.com/test.txt')
    const asked = { method: 'GET', url, headers: { range: 'bytes=0-9' } } as const
    const { authorization } = sign(asked, credentials, new Date('2013-05-24T00:00:00Z'))
    expect(authorization).toMatch(
      /Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41$/,
    )
  })
})
