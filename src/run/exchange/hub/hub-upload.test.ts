import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commitFiles, ensureDataset, type HubDataset } from './hub-upload.ts'

interface Seen {
  readonly method: string
  readonly path: string
  readonly type: string | null
  readonly key: boolean
  readonly body: unknown
}

/** What `huggingface_hub` sends for the files below, as `scripts/trackers/hub_client.py` recorded it. */
const theirs = (
  JSON.parse(readFileSync('test/fixtures/hub-client.json', 'utf8')) as readonly Seen[]
).filter(({ path }) => path !== '/api/validate-yaml')

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

/** A hub that keeps what it is sent and answers as the real one does. */
async function openHub(answers: Readonly<Record<string, readonly [number, object]>> = {}) {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request
    const text = await textOf(request)
    const type = headers['content-type'] ?? null
    const isLines = type === 'application/x-ndjson'
    const body = isLines
      ? text
          .trim()
          .split('\n')
          .map(line => JSON.parse(line) as unknown)
      : method === 'PUT'
        ? text
        : (JSON.parse(text || 'null') as unknown)
    seen.push({ method, path, type, key: headers.authorization === 'Bearer hf_secret', body })
    const [status, answer] = answers[path] ?? [200, answerTo(path, body)]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const answerTo = (path: string, body: unknown): object => {
    const { files = [], objects = [] } = (body ?? {}) as Partial<Record<string, { path: string }[]>>
    if (path.includes('/preupload/')) return { files: files.map(modeOf) }
    if (path.endsWith('/objects/batch')) {
      const actions = { upload: { href: `${address}/put` }, verify: { href: `${address}/verify` } }
      return { objects: objects.map(each => ({ ...each, actions })) }
    }
    return { commitUrl: `${address}/datasets/me/rows/commit/c` }
  }
  return { seen, address, [Symbol.asyncDispose]: async () => void server.close() }
}

const modeOf = ({ path }: { readonly path: string }) => ({
  path,
  uploadMode: path.startsWith('data/') ? 'lfs' : 'regular',
  shouldIgnore: false,
})

const dataset = (hub: string, visibility: HubDataset['visibility'] = 'private'): HubDataset => ({
  ...{ hub, key: 'hf_secret', owner: 'me', name: 'rows', visibility },
})

function filesIn(folder: string) {
  const [rows, card] = [join(folder, 'rows'), join(folder, 'card')]
  writeFileSync(rows, '{"a": 1}\n{"a": 2}\n')
  writeFileSync(card, '# rows\n')
  return [
    { path: 'data/train.jsonl', file: rows },
    { path: 'README.md', file: card, onlyIfMissing: true },
  ]
}

describe('rows on a hub', () => {
  it('are sent as its own client sends them, and the key to the hub alone', async () => {
    await using hub = await openHub()
    await ensureDataset(dataset(hub.address))
    const url = await commitFiles(
      dataset(hub.address),
      filesIn(mkdtempSync(join(tmpdir(), 'hub-'))),
      '2 rows of one',
    )
    expect(url).toMatch(/commit\/c$/)
    expect(hub.seen).toEqual(theirs)
  })

  it('leave a card alone that is there', async () => {
    const files = ['data/train.jsonl', 'README.md'].map(path => ({ ...modeOf({ path }), oid: 'o' }))
    await using hub = await openHub({ '/api/datasets/me/rows/preupload/main': [200, { files }] })
    await commitFiles(dataset(hub.address), filesIn(mkdtempSync(join(tmpdir(), 'hub-'))), 'again')
    expect(JSON.stringify(hub.seen.at(-1))).not.toContain('README.md')
  })

  it('in parts, if the hub wants them so', async () => {
    const sent: string[] = []
    const store = createServer(async (request, response) => {
      sent.push(`${request.url} ${await textOf(request)}`)
      response.setHeader('etag', `tag${request.url}`).end('{}')
    }).listen(0, '127.0.0.1')
    await once(store, 'listening')
    const to = `http://127.0.0.1:${(store.address() as AddressInfo).port}`
    const oid = '5b8f82d3cc66533038f4fdee4b09bc34e9b051ba8de538b8289eb52a425e3a79'
    const header = { chunk_size: '10', '1': `${to}/1`, '2': `${to}/2` }
    const objects = [{ oid, actions: { upload: { href: `${to}/done`, header } } }]
    const batch = '/datasets/me/rows.git/info/lfs/objects/batch'
    await using hub = await openHub({ [batch]: [200, { objects }] })
    await commitFiles(dataset(hub.address), filesIn(mkdtempSync(join(tmpdir(), 'hub-'))), 'parts')
    store.close()
    const parts = [1, 2].map(partNumber => ({ partNumber, etag: `tag/${partNumber}` }))
    expect(sent).toEqual([
      '/1 {"a": 1}\n{',
      '/2 "a": 2}\n',
      `/done ${JSON.stringify({ oid, parts })}`,
    ])
  })

  it('are not put into a dataset that everyone may read, unless that was asked for', async () => {
    const answers = {
      '/api/repos/create': [409, { error: 'there already' }],
      '/api/datasets/me/rows': [200, { private: false }],
    } as const
    await using hub = await openHub(answers)
    await expect(ensureDataset(dataset(hub.address))).rejects.toThrow('is open to everyone')
    await ensureDataset(dataset(hub.address, 'public'))
  })

  it('are refused in the words of the hub', async () => {
    await using hub = await openHub({ '/api/repos/create': [403, { error: 'read only' }] })
    await expect(ensureDataset(dataset(hub.address))).rejects.toThrow(
      /answered 403: HF_TOKEN may not write there: .*read only/,
    )
  })
})
