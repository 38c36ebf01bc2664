import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { openDoor } from '../door/door.ts'
import { RefusedRequest } from '../door/json-body.ts'
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
  const entry = { host, allowedHosts, opensByLink: true }
  const server = openDoor({ ...entry, ...(token !== undefined && { token, tokenOf }) })
  const tries = runFork && new Tries(library, runFork)
  addPage(server, readPage(), token)
  addRuns(server, library, { canTry: runFork !== undefined })
  addGroups(server, library)
  addCompare(server, library)
  addImport(server, library)
  if (tries) addTries(server, tries)
  server.get('/api/live', (request, reply) =>
    sendLive(library, needed(request.query as Query, 'run'), reply),
  )
  const url = await server.listen({ host, port })
  return {
    url,
    async [Symbol.asyncDispose]() {
      await tries?.[Symbol.asyncDispose]()
      await server.close()
    },
  }
}

/** The token a request brings: a program's as a header, a browser's as a cookie, or in the first link. */
function tokenOf(request: FastifyRequest): string | undefined {
  const cookie = /(?:^|;\s*)espalier-view=([^;]*)/.exec(request.headers.cookie ?? '')?.[1]
  const { token } = request.query as { readonly token?: string }
  const inLink = request.routeOptions.url === '/' ? token : undefined
  return bearerOf(request.headers) ?? inLink ?? (cookie && decoded(cookie))
}

/** A cookie's text, decoded if possible. */
function decoded(cookie: string): string {
  try {
    return decodeURIComponent(cookie)
  } catch {
    return cookie
  }
}

function addPage(
  server: FastifyInstance,
  { html, files }: PageFiles,
  token: string | undefined,
): void {
  server.addHook('onSend', async (_request, reply) => {
    reply.header('content-security-policy', servedPolicy)
    reply.header('referrer-policy', 'no-referrer')
    reply.header('cross-origin-opener-policy', 'same-origin')
    reply.header('x-frame-options', 'DENY')
  })
  server.get('/', async (request, reply) => {
    const given = request.query as { readonly token?: string }
    if (token !== undefined && given.token !== undefined) {
      // In a cookie that scripts cannot read, and no longer in the address that people copy.
      reply.header(
        'set-cookie',
        `${cookieName}=${encodeURIComponent(token)}; HttpOnly; SameSite=Strict; Path=/`,
      )
      return await reply.redirect('/')
    }
    return await reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-store')
      .send(html)
  })
  server.get('/assets/:name', async (request, reply) => {
    const { name } = request.params as { readonly name: string }
    const file = files.get(`assets/${name}`)
    if (!file) throw new NotFoundError(`no file ${name}`)
    return await reply
      .type(file.type)
      .header('cache-control', 'max-age=31536000, immutable')
      .send(file.bytes)
  })
}

type Query = Readonly<Record<string, string | undefined>>

/** A run by the name in a request's path, and what else it asks. */
async function opened(
  library: Library,
  request: FastifyRequest,
): Promise<{ run: ViewedRun; query: Query }> {
  const { run } = request.params as { readonly run: string }
  return { run: await library.open(run), query: request.query as Query }
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

function addRuns(
  server: FastifyInstance,
  library: Library,
  { canTry }: { readonly canTry: boolean },
): void {
  server.get('/api/runs', async () => await library.list())
  server.get('/api/runs/:run', async request => (await opened(library, request)).run.answer(canTry))
  server.get('/api/runs/:run/curves', async request =>
    (await opened(library, request)).run.curves(),
  )
  server.get('/api/runs/:run/facets', async request =>
    (await opened(library, request)).run.facets(),
  )
}

function addGroups(server: FastifyInstance, library: Library): void {
  const route = (
    path: string,
    answer: (run: ViewedRun, query: Query) => Promise<unknown>,
  ): void => {
    server.get(`/api/runs/:run/${path}`, async request => {
      const { run, query } = await opened(library, request)
      return await answer(run, query)
    })
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

function addCompare(server: FastifyInstance, library: Library): void {
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
  server.get('/api/compare', async request => {
    const query = request.query as Query
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

function addTries(server: FastifyInstance, tries: Tries): void {
  server.post('/api/runs/:run/try', async request => {
    const { run } = request.params as { readonly run: string }
    return { try: await tries.begin(run, request.body) }
  })
  server.get('/api/tries/:name', async request => {
    const { name } = request.params as { readonly name: string }
    const answer = tries.answer(name)
    if (!answer) throw new NotFoundError('no such fork')
    return answer
  })
}

function addImport(server: FastifyInstance, library: Library): void {
  server.addContentTypeParser('application/octet-stream', (_request, body, done) =>
    done(null, body),
  )
  server.post('/api/import', { bodyLimit: mostBytes }, async (request): Promise<ImportAnswer> => {
    const { name = '', format } = request.query as Query
    const { body } = request
    if (!(body instanceof Readable)) {
      throw new RefusedRequest(415, 'send the file as application/octet-stream')
    }
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
