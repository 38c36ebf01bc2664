import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { request } from 'undici'
import { z } from 'zod'
import { parseBounded, readBounded } from '../../../base/core/process/bounded.ts'

/** A dataset on a hub, and the key that may write to it. */
export interface HubDataset {
  /** The hub's address, without a slash at its end. */
  readonly hub: string
  readonly key: string
  readonly owner: string
  readonly name: string
  readonly visibility: 'private' | 'public'
  readonly signal?: AbortSignal
}

/** A file of this machine, and its path in the dataset. */
export interface HubFile {
  readonly path: string
  readonly file: string
  /** Whether a file that is there stays as it is. */
  readonly onlyIfMissing?: boolean
}

const apiOf = ({ hub, owner, name }: HubDataset): string => `${hub}/api/datasets/${owner}/${name}`

const patience = 60_000
/** Most bytes of an answer: parts of large files have an address each. */
const mostAnswer = 16 * 2 ** 20
/** Most characters of an answer that an error repeats. */
const mostShown = 300

interface Call {
  readonly method?: 'GET' | 'POST'
  readonly type?: string
  readonly body?: string
}

/** Asks the hub. The key goes to no other server: redirects are not followed. */
async function call({ hub, key, signal }: HubDataset, url: string, asked: Call) {
  const { method = 'POST', type = 'application/json', body } = asked
  const limit = AbortSignal.timeout(patience)
  return await fetch(url, {
    method,
    headers: {
      'content-type': type,
      ...(new URL(url).origin === new URL(hub).origin && { authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body }),
    redirect: 'error',
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  }).catch((cause: Error) => {
    signal?.throwIfAborted()
    throw new Error(`${new URL(url).host} does not answer: ${reasonOf(cause)}`, { cause })
  })
}

const reasonOf = ({ message, cause }: Error): string =>
  cause instanceof Error ? cause.message || String(cause) : message

async function refusalOf(url: string, response: Response): Promise<Error> {
  const { status } = response
  const hint = status === 401 || status === 403 ? ': HF_TOKEN may not write there' : ''
  const said = (await textOf(response.body)).slice(0, mostShown)
  return new Error(`${new URL(url).pathname} answered ${status}${hint}: ${said}`)
}

async function readJson<T>(url: string, response: Response, shape: z.ZodType<T>): Promise<T> {
  if (!response.ok) throw await refusalOf(url, response)
  const text = await textOf(response.body)
  const read = shape.safeParse(tryJson(text))
  if (read.success) return read.data
  throw new Error(`${url} answered something else than a hub does: ${z.prettifyError(read.error)}`)
}

async function textOf(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  return (await readBounded(body, mostAnswer)).toString('utf8')
}

function tryJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch {
    return undefined
  }
}

/** Makes the dataset; one that is there must not be open to more people than was asked for. */
export async function ensureDataset(to: HubDataset): Promise<void> {
  const { hub, owner, name, visibility } = to
  const url = `${hub}/api/repos/create`
  const body = JSON.stringify({ name, organization: owner, visibility, type: 'dataset' })
  const made = await call(to, url, { body })
  if (made.ok) return
  if (made.status !== 409) throw await refusalOf(url, made)
  const found = await call(to, apiOf(to), { method: 'GET' })
  const known = await readJson(apiOf(to), found, z.object({ private: z.boolean() }))
  if (known.private || visibility === 'public') return
  throw new Error(
    `${owner}/${name} is open to everyone: make it private, name another, or say visibility=public`,
  )
}

interface Prepared extends HubFile {
  readonly size: number
  readonly sha256: string
  /** The beginning, by which the hub decides how the file is stored. */
  readonly sample: string
}

const sampleBytes = 512

async function prepare(file: HubFile): Promise<Prepared> {
  const { size } = await stat(file.file)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file.file)) hash.update(chunk as Buffer)
  await using handle = await open(file.file)
  const beginning = Buffer.alloc(Math.min(sampleBytes, size))
  await handle.read(beginning, 0, beginning.length)
  return { ...file, size, sha256: hash.digest('hex'), sample: beginning.toString('base64') }
}

const preuploaded = z.object({
  files: z.array(
    z.object({
      path: z.string(),
      uploadMode: z.enum(['lfs', 'regular']),
      shouldIgnore: z.boolean().optional(),
      oid: z.string().nullish(),
    }),
  ),
})

/** Commits files in one commit, as `huggingface_hub` does; gives the address of the commit. */
export async function commitFiles(
  to: HubDataset,
  files: readonly HubFile[],
  summary: string,
): Promise<string> {
  const prepared = await Promise.all(files.map(prepare))
  const asked = prepared.map(({ path, sample, size }) => ({ path, sample, size }))
  const url = `${apiOf(to)}/preupload/main`
  const told = await call(to, url, { body: JSON.stringify({ files: asked }) })
  const modes = new Map(
    (await readJson(url, told, preuploaded)).files.map(each => [each.path, each]),
  )
  const wanted = prepared.filter(
    ({ path, onlyIfMissing }) => !(onlyIfMissing && modes.get(path)?.oid),
  )
  // An empty file cannot be stored as a large one.
  const isLarge = ({ path, size }: Prepared): boolean =>
    size > 0 && modes.get(path)?.uploadMode === 'lfs'
  await uploadLarge(to, wanted.filter(isLarge))
  const lines = [
    { key: 'header', value: { summary, description: '' } },
    ...(await Promise.all(
      wanted.map(async each => (isLarge(each) ? largeLine(each) : await smallLine(each))),
    )),
  ]
  const commit = `${apiOf(to)}/commit/main`
  const body = lines.map(line => `${JSON.stringify(line)}\n`).join('')
  const answer = await call(to, commit, { type: 'application/x-ndjson', body })
  const { commitUrl } = await readJson(commit, answer, z.object({ commitUrl: z.string() }))
  return commitUrl
}

function largeLine({ path, sha256, size }: Prepared): object {
  return { key: 'lfsFile', value: { path, algo: 'sha256', oid: sha256, size } }
}

async function smallLine({ path, file }: Prepared): Promise<object> {
  const content = (await readFile(file)).toString('base64')
  return { key: 'file', value: { content, path, encoding: 'base64' } }
}

const action = z.object({ href: z.string(), header: z.record(z.string(), z.unknown()).nullish() })
const batch = z.object({
  objects: z.array(
    z.object({
      oid: z.string(),
      error: z.object({ message: z.string() }).optional(),
      actions: z.object({ upload: action, verify: action.optional() }).optional(),
    }),
  ),
})

const lfsType = 'application/vnd.git-lfs+json'

/** Sends large files where the hub says, by Git LFS's batch protocol. */
async function uploadLarge(to: HubDataset, files: readonly Prepared[]): Promise<void> {
  if (files.length === 0) return
  const url = `${to.hub}/datasets/${to.owner}/${to.name}.git/info/lfs/objects/batch`
  const body = JSON.stringify({
    operation: 'upload',
    transfers: ['basic', 'multipart'],
    objects: files.map(({ sha256: oid, size }) => ({ oid, size })),
    hash_algo: 'sha256',
    ref: { name: 'main' },
  })
  const { objects } = await readJson(url, await call(to, url, { type: lfsType, body }), batch)
  for (const { oid, error, actions } of objects) {
    const file = files.find(({ sha256 }) => sha256 === oid)
    if (!file) throw new Error(`${url} names a file that was not offered: ${oid}`)
    if (error) throw new Error(`${file.path} is not taken: ${error.message}`)
    // Without actions the hub has these bytes already.
    if (actions) await uploadOne(to, file, actions)
  }
}

type Actions = NonNullable<z.infer<typeof batch>['objects'][number]['actions']>

async function uploadOne(to: HubDataset, file: Prepared, { upload, verify }: Actions) {
  const chunkSize = Number(upload.header?.chunk_size ?? 0)
  if (chunkSize > 0) await uploadParts(to, file, { upload, chunkSize })
  else await put(to, upload.href, file, { start: 0, end: file.size })
  if (!verify) return
  const { sha256: oid, size } = file
  const answer = await call(to, verify.href, { body: JSON.stringify({ oid, size }) })
  if (!answer.ok) throw await refusalOf(verify.href, answer)
}

interface Parts {
  readonly upload: Actions['upload']
  readonly chunkSize: number
}

async function uploadParts(to: HubDataset, file: Prepared, { upload, chunkSize }: Parts) {
  const numbered = Object.entries(upload.header ?? {}).filter(([name]) => /^\d+$/.test(name))
  const places = numbered.sort(([a], [b]) => Number(a) - Number(b)).map(([, url]) => String(url))
  if (places.length !== Math.ceil(file.size / chunkSize))
    throw new Error(`${file.path}: the hub names ${places.length} parts, which do not fit its size`)
  const parts: object[] = []
  for (const [index, url] of places.entries()) {
    const start = index * chunkSize
    const etag = await put(to, url, file, { start, end: Math.min(file.size, start + chunkSize) })
    parts.push({ partNumber: index + 1, etag })
  }
  const body = JSON.stringify({ oid: file.sha256, parts })
  const answer = await call(to, upload.href, { type: lfsType, body })
  if (!answer.ok) throw await refusalOf(upload.href, answer)
}

/** Puts a stretch of a file to a signed address, which is shown no key; gives its tag. */
async function put(
  { signal }: HubDataset,
  url: string,
  { file, path }: Prepared,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<string> {
  const { statusCode, headers, body } = await request(url, {
    method: 'PUT',
    headers: { 'content-length': String(end - start) },
    body: createReadStream(file, { start, end: end - 1 }),
    headersTimeout: patience,
    ...(signal && { signal }),
  })
  const said = await textOf(body)
  if (statusCode < 300) return String(headers.etag ?? '')
  throw new Error(`${path} was not stored, answer ${statusCode}: ${said.slice(0, mostShown)}`)
}
