import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Door, statusOf } from '../door/door.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { Reply } from '../door/reply.ts'
import type { Query, RequestHead } from '../door/request.ts'
import { bearerOf } from '../door/token.ts'
import { compareSides, rowsOfSide, type Side } from './answer/comparison.ts'
import type { ImportAnswer } from './answers.ts'
import type { Library } from './library.ts'
import { sendLive } from './live.ts'
import { type PageFiles, readPage, servedPolicy } from './page-files.ts'
import { readQuery } from './query.ts'
import { type RunFork, Tries } from './tries.ts'
import { NotFoundError, type ViewedRun } from './viewed-run.ts'

/** Where the page is served and to whom. */
export interface ServeViewOptions {
  /** @default 127.0.0.1 */
  readonly host?: string
  /** @default 0: any free one */
  readonly port?: number
  /** Required if the server listens beyond loopback. */
  readonly token?: string
  /** Names besides its address that it may be called by. */
  readonly allowedHosts?: readonly string[]
  /** How forks are continued; without it the page cannot fork. */
  readonly runFork?: RunFork
}

/** A page that is being served. */
export interface ServedView extends AsyncDisposable {
  readonly url: string
}

const cookieName = 'espalier-view'
const mostRows = 500
const mostTokens = 4000
/** A file that is dropped on the page. */
const mostBytes = 1 << 30

/** Serves the page over the runs of a library. */
export async function serveView(
  library: Library,
  options: ServeViewOptions = {},
): Promise<ServedView> {
  const { host = '127.0.0.1', port = 0, token, runFork, allowedHosts = [] } = options
  const entry = { host, allowedHosts, opensByLink: true, headers: pageHeaders, tell }
  const door = new Door({ ...entry, ...(token !== undefined && { token, tokenOf }) })
  const tries = runFork && new Tries(library, runFork)
  addPage(door, readPage(), token)
  addRuns(door, library, { canTry: runFork !== undefined })
  addGroups(door, library)
  addCompare(door, library)
  addImport(door, library)
  if (tries) addTries(door, tries)
  door.get('/api/live', ({ query }, reply) => sendLive(library, needed(query, 'run'), reply))
  const url = await door.listen(port)
  return {
    url,
    async [Symbol.asyncDispose]() {
      await tries?.[Symbol.asyncDispose]()
      await door.close()
    },
  }
}

/** The token a request brings: a program's as a header, a browser's as a cookie, or in the first link. */
function tokenOf({ headers, path, query }: RequestHead): string | undefined {
  const cookie = /(?:^|;\s*)espalier-view=([^;]*)/.exec(headers.cookie ?? '')?.[1]
  const inLink = path === '/' && typeof query.token === 'string' ? query.token : undefined
  return bearerOf(headers) ?? inLink ?? (cookie && decoded(cookie))
}

/** As the page reads it. */
function tell(cause: unknown, _request: RequestHead, reply: Reply): void {
  reply.status = statusOf(cause)
  reply.give({ message: (cause as Error).message })
}

const pageHeaders = {
  'content-security-policy': servedPolicy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
}

/** A cookie's text, decoded if possible. */
function decoded(cookie: string): string {
  try {
    return decodeURIComponent(cookie)
  } catch {
    return cookie
  }
}

function addPage(door: Door, { html, files }: PageFiles, token: string | undefined): void {
  door.get('/', ({ query }, reply) => {
    if (token !== undefined && query.token !== undefined) {
      // In a cookie that scripts cannot read, and no longer in the address that people copy.
      reply.header(
        'set-cookie',
        `${cookieName}=${encodeURIComponent(token)}; HttpOnly; SameSite=Strict; Path=/`,
      )
      reply.header('location', '/')
      reply.empty(302)
      return
    }
    reply.header('cache-control', 'no-store')
    reply.send(200, 'text/html; charset=utf-8', html)
  })
  door.get('/assets/:name', ({ params: { name } }, reply) => {
    const file = files.get(`assets/${name}`)
    if (!file) throw new NotFoundError(`no file ${name}`)
    reply.header('cache-control', 'max-age=31536000, immutable')
    reply.send(200, file.type, file.bytes)
  })
}

function needed(query: Query, name: string): string {
  const value = query[name]
  if (value === undefined || value === '') throw new RefusedRequest(400, `${name} is missing`)
  return value
}

/** A whole number that a request may name. */
function wholeIn(query: Query, name: string): number | undefined {
  const text = query[name] ?? ''
  if (text === '') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const got = JSON.stringify(text.slice(0, 100))
  throw new RefusedRequest(400, `${name} is a whole number from 0 on, not ${got}`)
}

function pageIn(query: Query, most: number): { readonly offset: number; readonly limit: number } {
  const { offset = 0, limit = 100 } = {
    offset: wholeIn(query, 'offset'),
    limit: wholeIn(query, 'limit'),
  }
  return { offset, limit: Math.min(most, limit) }
}

function refuse(problem: string): never {
  throw new RefusedRequest(400, problem)
}

function addRuns(door: Door, library: Library, { canTry }: { readonly canTry: boolean }): void {
  door.get('/api/runs', async () => await library.list())
  door.get('/api/runs/:run', async ({ params }) => (await library.open(params.run)).answer(canTry))
  door.get('/api/runs/:run/curves', async ({ params }) => (await library.open(params.run)).curves())
  door.get('/api/runs/:run/facets', async ({ params }) => (await library.open(params.run)).facets())
}

function addGroups(door: Door, library: Library): void {
  const route = <const Path extends string>(
    path: Path,
    answer: (run: ViewedRun, query: Query) => Promise<unknown>,
  ): void => {
    door.get(`/api/runs/:run/${path}` as '/api/runs/:run/PATH', async ({ params, query }) =>
      answer(await library.open(params.run), query),
    )
  }
  route('groups', (run, query) => run.groups(readQuery(query, refuse), pageIn(query, mostRows)))
  route('group', (run, query) => run.group(needed(query, 'id')))
  route('trajectory', (run, query) => run.trajectory(needed(query, 'id')))
  route('raw', (run, query) => run.raw(needed(query, 'id')))
  route('tree', (run, query) => run.tree(needed(query, 'id')))
  route('parting', (run, query) => run.parting(needed(query, 'a'), needed(query, 'b')))
  route('tokens', (run, query) =>
    run.tokens(needed(query, 'id'), {
      path: wholeIn(query, 'path') ?? 0,
      ...pageIn(query, mostTokens),
    }),
  )
}

function addCompare(door: Door, library: Library): void {
  const side = async (query: Query, which: 'before' | 'after'): Promise<Side> => {
    const name = needed(query, which)
    const at = wholeIn(query, `${which}-step`) ?? null
    const run = await library.open(name)
    const title = at === null ? name : `${name} at step ${at}`
    return {
      run: name,
      step: at,
      title,
      rows: rowsOfSide(run.rows(), at),
      successAt: run.successAt,
    }
  }
  door.get('/api/compare', async ({ query }) => {
    const page = pageIn(query, mostRows)
    const before = await side(query, 'before')
    const after = await side(query, 'after')
    try {
      return compareSides(before, after, page)
    } catch (error) {
      throw new NotFoundError((error as Error).message)
    }
  })
}

function addTries(door: Door, tries: Tries): void {
  door.post('/api/runs/:run/try', async request => ({
    try: await tries.begin(request.params.run, await request.json()),
  }))
  door.get('/api/tries/:name', ({ params }) => {
    const answer = tries.answer(params.name)
    if (!answer) throw new NotFoundError('no such fork')
    return answer
  })
}

function addImport(door: Door, library: Library): void {
  door.post('/api/import', async (request): Promise<ImportAnswer> => {
    const { name = '', format } = request.query
    const body = request.stream('application/octet-stream')
    const title = titleOf(name)
    const file = join(await library.scratch(), `drop-${crypto.randomUUID()}`)
    try {
      await pipeline(body, bounded(mostBytes), createWriteStream(file, { mode: 0o600 }))
      const read = await library.importFile(file, title, format || undefined)
      const run = library.addRun(read.folder, `${title}, read as ${read.format}`, title)
      return { run, format: read.format, trajectories: read.trajectories }
    } finally {
      await rm(file, { force: true })
    }
  })
}

/** What a dropped file is called; the name has to be possible in an address too, which `..` is not. */
function titleOf(name: string): string {
  const title = basename(name).slice(0, 200)
  return /^\.*$/.test(title) ? 'file' : title
}

/** Lets so many bytes through, and ends with an error beyond them. */
function bounded(most: number): Transform {
  let count = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      count += chunk.length
      if (count <= most) done(null, chunk)
      else done(new RefusedRequest(413, `files of up to ${most} bytes can be dropped`))
    },
  })
}
