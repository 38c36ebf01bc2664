import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
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
