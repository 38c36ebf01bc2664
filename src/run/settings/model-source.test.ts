import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { byteModel, findModel, openRenderer } from './model-source.ts'

/** What a hub was asked for. */
interface Asked {
  readonly path: string
  readonly key: string | undefined
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function openHub(answer: Answer) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', key: request.headers.authorization })
    answer(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => new Promise(resolve => server.close(resolve))
  return { url, asked, [Symbol.asyncDispose]: async () => void (await close()) }
}

/** Answers with the files of the byte model, as the hub has them under a model's id. */
async function serveBytes(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = request.url?.split('/resolve/main/')[1] ?? ''
  const bytes = await readFile(join(byteModel, name)).catch(() => undefined)
  response.statusCode = bytes ? 200 : 404
  response.end(bytes ?? 'Entry not found')
}

let root = ''

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'espalier-cache-'))
  vi.stubEnv('ESPALIER_CACHE', join(root, 'own'))
  vi.stubEnv('HF_HUB_CACHE', join(root, 'hub'))
  vi.stubEnv('HF_TOKEN', '')
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(root, { recursive: true })
})

describe('findModel', () => {
  it('takes a folder as it is', async () => {
    expect(await findModel(byteModel)).toBe(byteModel)
  })

  it('finds a snapshot in the cache of Hugging Face’s tools, the main one first', async () => {
    const folder = join(root, 'hub', 'models--owner--name')
    for (const revision of ['aaa', 'bbb', 'ccc']) {
      await mkdir(join(folder, 'snapshots', revision), { recursive: true })
    }
    for (const revision of ['aaa', 'bbb']) {
      await writeFile(join(folder, 'snapshots', revision, 'tokenizer.json'), '{}')
    }
    expect(await findModel('owner/name', { offline: true })).toMatch(/aaa$/)
    await mkdir(join(folder, 'refs'))
    await writeFile(join(folder, 'refs', 'main'), 'bbb\n')
    expect(await findModel('owner/name', { offline: true })).toMatch(/bbb$/)
    await writeFile(join(folder, 'refs', 'main'), '../../../elsewhere')
    expect(await findModel('owner/name', { offline: true })).toMatch(/snapshots.(aaa|bbb)$/)
  })

  it('fetches tokenizer and template files only, after saying so, and only once', async () => {
    await using hub = await openHub((...given) => void serveBytes(...given))
    const told: string[] = []
    const options = { hub: `${hub.url}/`, tell: (line: string) => told.push(line) }
    const renderer = await openRenderer('owner/bytes', options)
    expect(renderer.name).toBe('owner--bytes')
    expect(renderer.profile.stops).toEqual(['<|im_end|>'])
    expect(told).toEqual([expect.stringContaining('fetching tokenizer and chat template of owner')])
    const base = '/owner/bytes/resolve/main/'
    expect(hub.asked.map(({ path }) => path.slice(base.length))).toEqual([
      'tokenizer.json',
      'tokenizer_config.json',
      'chat_template.jinja',
      'chat_template.json',
      'generation_config.json',
      'preprocessor_config.json',
      'processor_config.json',
    ])
    expect(hub.asked.every(({ path }) => path.startsWith(base))).toBe(true)
    const count = hub.asked.length
    await openRenderer('owner/bytes', { ...options, offline: true })
    expect(hub.asked).toHaveLength(count)
    expect(await readdir(join(root, 'own', 'models'))).toEqual(['owner--bytes'])
  })

  it('[H4] follows redirects, and shows its key to the hub alone', async () => {
    vi.stubEnv('HF_TOKEN', 'secret')
    await using store = await openHub((...given) => void serveBytes(...given))
    await using hub = await openHub((request, response) => {
      response.writeHead(302, { location: `${store.url}${request.url}` }).end()
    })
    await findModel('owner/name', { hub: hub.url })
    expect(hub.asked.every(({ key }) => key === 'Bearer secret')).toBe(true)
    expect(store.asked.length).toBe(hub.asked.length)
    expect(store.asked.every(({ key }) => key === undefined)).toBe(true)
  })

  it('gives up on redirects without end, and on those that lead out of HTTP', async () => {
    await using circle = await openHub((request, response) => {
      response.writeHead(307, { location: request.url ?? '/' }).end()
    })
    await expect(findModel('owner/name', { hub: circle.url })).rejects.toThrow('more than 5 times')
    await using file = await openHub((_, response) => {
      response.writeHead(302, { location: 'file:///etc/passwd' }).end()
    })
    await expect(findModel('owner/name', { hub: file.url })).rejects.toThrow('redirected to file:')
  })

  it('says what the hub answered, and keeps nothing of a broken fetch', async () => {
    await using empty = await openHub((_, response) => response.writeHead(404).end())
    await expect(findModel('owner/name', { hub: empty.url })).rejects.toThrow(
      'has no tokenizer.json for owner/name',
    )
    await using gated = await openHub((_, response) => response.writeHead(401).end())
    await expect(findModel('owner/name', { hub: gated.url })).rejects.toThrow(
      /answered 401: .*HF_TOKEN is missing/,
    )
    await using broken = await openHub((request, response) => {
      if (request.url?.endsWith('tokenizer.json')) void serveBytes(request, response)
      else response.writeHead(500).end()
    })
    await expect(findModel('owner/name', { hub: broken.url })).rejects.toThrow('answered 500')
    await expect(readdir(join(root, 'own'))).rejects.toThrow()
  })

  it('says which model was looked for where, and what to give, where no hub answers', async () => {
    const hub = await openHub(() => {})
    await hub[Symbol.asyncDispose]()
    const found = await findModel('owner/name', { hub: hub.url }).catch((cause: Error) => cause)
    const { message, cause } = found as Error
    expect(message).toContain(
      `owner/name is not a folder here and not in the local caches (${root}`,
    )
    expect(message).toContain(join(root, 'hub', 'models--owner--name'))
    expect(message).toContain(`${hub.url} does not answer: connect ECONNREFUSED`)
    expect(message).toContain('Give --model a folder that has its tokenizer.json')
    expect((cause as Error).cause).toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('fetches nothing offline', async () => {
    await using hub = await openHub((...given) => void serveBytes(...given))
    await expect(findModel('owner/name', { hub: hub.url, offline: true })).rejects.toThrow(
      /owner.name is not a folder here .*, and --offline forbids fetching it. Give --model a folder/,
    )
    expect(hub.asked).toEqual([])
  })

  it.each(['../../etc/none', 'owner/../name', 'a/b/c', '/no/such/folder', '.hidden/name', 'a\\b'])(
    'refuses %s, which is neither a folder nor an id',
    async model => {
      await using hub = await openHub((...given) => void serveBytes(...given))
      await expect(findModel(model, { hub: hub.url })).rejects.toThrow('not a Hugging Face id')
      expect(hub.asked).toEqual([])
    },
  )
})
