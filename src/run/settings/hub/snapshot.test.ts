import { createHash } from 'node:crypto'
import { mkdtempSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, readlink, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { until } from '../../../../test/until.ts'
import { makeBar } from './find-weights.ts'
import { findWeights, type Progress, readHubModel } from './snapshot.ts'

const commit = 'c'.repeat(40)
const weights = Buffer.alloc(50_000, 7)
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const gitHash = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')

interface Asked {
  readonly path: string
  readonly key: string | undefined
  readonly range: string | undefined
}

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    const { authorization: key, range } = request.headers
    asked.push({ path: request.url ?? '', key, range })
    answer(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  return { url, asked, [Symbol.asyncDispose]: close }
}

/** The first download ends at this byte, once the client has kept something of it. */
interface Cut {
  readonly at: number
  readonly isKept: () => boolean
}

/** The files of a model, as a hub describes and gives them; large ones lie on a server of their own. */
async function openHub(
  files: Readonly<Record<string, Buffer>>,
  { corrupt, cut, more = {} }: { corrupt?: Buffer; cut?: Cut; more?: object } = {},
) {
  let cuts = cut ? 1 : 0
  const store = await serve((request, response) => {
    const bytes = corrupt ?? files[request.url!.slice(1)]!
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0)
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': bytes.length - from })
    if (cut && cuts-- > 0) {
      response.write(bytes.subarray(0, cut.at))
      void until(cut.isKept).then(() => response.destroy())
    } else response.end(bytes.subarray(from))
  })
  const siblings = Object.entries(files).map(([rfilename, bytes]) => ({
    ...{ rfilename, size: bytes.length, blobId: gitHash(bytes) },
    ...(bytes.length > 10_000 && { lfs: { sha256: sha256(bytes), size: bytes.length } }),
  }))
  const hub = await serve((request, response) => {
    if (request.url!.startsWith('/api/models/owner/name/revision/')) {
      response.end(
        JSON.stringify({ sha: commit, siblings, cardData: { license: 'apache-2.0' }, ...more }),
      )
      return
    }
    const name = request.url!.split(`/owner/name/resolve/${commit}/`)[1]!
    const bytes = files[name]
    if (!bytes) response.writeHead(404).end()
    else if (bytes.length > 10_000)
      response.writeHead(302, { location: `${store.url}/${name}` }).end()
    else response.end(bytes)
  })
  return {
    ...{ hub, store },
    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

const text = (value: object): Buffer => Buffer.from(JSON.stringify(value))
const folderFiles = {
  'config.json': text({ model_type: 'llama' }),
  'tokenizer.json': text({}),
  'model.safetensors': weights,
  'pytorch_model.bin': Buffer.alloc(20_000),
  'modeling.py': Buffer.from('import os'),
  'onnx/model.onnx': Buffer.alloc(3),
}

let root = ''
const told: string[] = []
const find = (name: string, url: string, more: object = {}): Promise<string> =>
  findWeights(readHubModel(name), {
    hub: url,
    offline: false,
    tell: line => told.push(line),
    ...more,
  })

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'espalier-hub-'))
  told.length = 0
  vi.stubEnv('HF_HUB_CACHE', undefined)
  vi.stubEnv('HF_HOME', root)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(root, { recursive: true, force: true })
})
const cache = (...parts: string[]): string => join(root, 'hub', 'models--owner--name', ...parts)

describe('weights from a hub', () => {
  it("lie in Hugging Face's own layout, without pickles and code, and are fetched once", async () => {
    await using served = await openHub(folderFiles)
    const { hub, store } = served
    const progress: Progress[] = []
    const folder = await find('owner/name', hub.url, {
      key: 'secret',
      onProgress: (each: Progress) => progress.push(each),
    })
    expect(folder).toBe(cache('snapshots', commit))
    expect((await readdir(folder)).sort()).toEqual([
      'config.json',
      'model.safetensors',
      'tokenizer.json',
    ])
    expect(await readlink(join(folder, 'model.safetensors'))).toBe(
      join('..', '..', 'blobs', sha256(weights)),
    )
    expect(await readFile(cache('refs', 'main'), 'utf8')).toBe(commit)
    expect(await readFile(join(folder, 'model.safetensors'))).toEqual(weights)
    expect(told).toEqual([
      expect.stringMatching(/^fetching owner\/name \(0\.1 MB\) from .*; licence: apache-2\.0/),
    ])
    expect(progress.at(-1)).toMatchObject({ done: progress.at(-1)!.total })
    // The key is shown to the hub, and never to where it redirects.
    expect(hub.asked.every(({ key }) => key === 'Bearer secret')).toBe(true)
    expect(store.asked.map(({ key }) => key)).toEqual([undefined])
    const count = hub.asked.length
    expect(await find('owner/name', hub.url, { offline: true })).toBe(folder)
    expect(hub.asked).toHaveLength(count)
  })

  it('go on where a download was cut off', async () => {
    const part = cache('blobs', `${sha256(weights)}.incomplete`)
    const isKept = () => (statSync(part, { throwIfNoEntry: false })?.size ?? 0) > 0
    await using served = await openHub(folderFiles, { cut: { at: 30_000, isKept } })
    const folder = await find('owner/name', served.hub.url)
    expect(await readFile(join(folder, 'model.safetensors'))).toEqual(weights)
    const [first, second] = served.store.asked.map(({ range }) => range)
    expect(first).toBeUndefined()
    expect(second).toMatch(/^bytes=\d+-$/)
    expect(await readdir(cache('blobs'))).not.toContainEqual(expect.stringContaining('.incomplete'))
  })

  it('go on with what an earlier program left, and are whole or refused', async () => {
    await using served = await openHub(folderFiles)
    await mkdir(cache('blobs'), { recursive: true })
    const part = cache('blobs', `${sha256(weights)}.incomplete`)
    await writeFile(part, weights)
    await truncate(part, 1000)
    await find('owner/name', served.hub.url)
    expect(served.store.asked.map(({ range }) => range)).toEqual(['bytes=1000-'])
  })

  it('are refused if their hash is wrong, and nothing of them stays', async () => {
    await using served = await openHub(folderFiles, { corrupt: Buffer.alloc(50_000, 8) })
    await expect(find('owner/name', served.hub.url)).rejects.toThrow(
      /model\.safetensors is damaged: its hash is/,
    )
    expect(await readdir(cache('snapshots', commit))).not.toContain('model.safetensors')
    await expect(find('owner/name', served.hub.url, { offline: true })).rejects.toThrow(
      /owner\/name \(main\) is not whole in .*--offline forbids fetching it/,
    )
  })

  it('may be one GGUF file, named if there are several', async () => {
    const several = { 'a.gguf': weights, 'b.gguf': Buffer.alloc(3), 'README.md': Buffer.from('#') }
    await using served = await openHub(several)
    await expect(find('owner/name', served.hub.url)).rejects.toThrow(
      /several GGUF files: name one, as in embedded:hf:owner\/name\/a\.gguf/,
    )
    expect(await find('owner/name/a.gguf', served.hub.url)).toBe(
      cache('snapshots', commit, 'a.gguf'),
    )
    await expect(find('owner/name/c.gguf', served.hub.url)).rejects.toThrow(
      'has no c.gguf; it has a.gguf, b.gguf',
    )
  })

  it('are no pickles, and no files outside the folder', async () => {
    await using pickles = await openHub({ 'pytorch_model.bin': weights })
    await expect(find('owner/name', pickles.hub.url)).rejects.toThrow(
      /no safetensors and no GGUF: only pytorch_model\.bin, which may hold code/,
    )
    const evil = { rfilename: '../../evil.safetensors', size: 3, blobId: 'a'.repeat(40) }
    await using outside = await openHub(folderFiles, { more: { siblings: [evil] } })
    await expect(find('owner/name', outside.hub.url)).rejects.toThrow(
      'has no safetensors and no GGUF',
    )
    expect(outside.store.asked).toEqual([])
  })

  it.each(['name', 'owner/../name', 'owner/name/x.bin', 'owner/name@../../x', 'a/b/c.gguf/d'])(
    '%s names none, and nobody is asked',
    name => {
      expect(() => readHubModel(name)).toThrow(/write embedded:hf:OWNER\/NAME/)
    },
  )

  it('are told as they come where somebody looks', () => {
    const written: string[] = []
    const write = (line: string): boolean => written.push(line) > 0
    const draw = makeBar({ isTTY: true, write } as never)
    for (const done of [0, 1, 500, 1000]) draw({ name: 'w', done, total: 1000 })
    expect(written).toHaveLength(4)
    expect(written.at(-1)).toContain('100.0 %  w\n')
    makeBar({ isTTY: false, write } as never)({ name: 'w', done: 1, total: 2 })
    expect(written).toHaveLength(4)
  })
})
