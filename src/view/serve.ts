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
import type { ImportAnswer, TryRequest } from './answers.ts'
import type { Library } from './library.ts'
import { sendLive } from './live.ts'
import { type PageFiles, readPage, servedPolicy } from './page-files.ts'
import { readQuery } from './query.ts'
import { BadTryError, type RunFork, Tries } from './tries.ts'
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
  server.get('/api/live', (request, reply) => sendLive(library, request, reply))
  const url = await server.listen({ host, port })
  return {
    url: token === undefined ? url : `${url}/?token=${encodeURIComponent(token)}`,
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
  if (value === undefined || value === '') throw new BadTryError(`${name} is missing`)
  return value
}

function pageIn(query: Query, most: number): { readonly offset: number; readonly limit: number } {
  const number = (name: string, otherwise: number): number => {
    const value = Math.floor(Number(query[name] ?? otherwise))
    return Number.isFinite(value) && value >= 0 ? value : otherwise
  }
  return { offset: number('offset', 0), limit: Math.min(most, number('limit', 100)) }
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
  route('groups', (run, query) => run.groups(readQuery(query), pageIn(query, mostRows)))
  route('group', (run, query) => run.group(needed(query, 'id')))
  route('trajectory', (run, query) => run.trajectory(needed(query, 'id')))
  route('raw', (run, query) => run.raw(needed(query, 'id')))
  route('tree', (run, query) => run.tree(needed(query, 'id')))
  route('parting', (run, query) => run.parting(needed(query, 'a'), needed(query, 'b')))
  route('tokens', (run, query) =>
    run.tokens(needed(query, 'id'), {
      path: Number(query.path ?? 0) || 0,
      ...pageIn(query, mostTokens),
    }),
  )
}

function addCompare(server: FastifyInstance, library: Library): void {
  const side = async (name: string, step: string | undefined): Promise<Side> => {
    const run = await library.open(name)
    const at = step === undefined || step === '' ? null : Number(step)
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
    const before = await side(needed(query, 'before'), query['before-step'])
    const after = await side(needed(query, 'after'), query['after-step'])
    try {
      return compareSides(before, after, pageIn(query, mostRows))
    } catch (error) {
      throw new NotFoundError((error as Error).message)
    }
  })
}

function addTries(server: FastifyInstance, tries: Tries): void {
  server.post('/api/runs/:run/try', async request => {
    const { run } = request.params as { readonly run: string }
    return { try: await tries.begin(run, request.body as TryRequest) }
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
    const { name = 'file', format } = request.query as Query
    const { body } = request
    if (!(body instanceof Readable)) {
      throw new RefusedRequest(415, 'send the file as application/octet-stream')
    }
    const title = basename(name).slice(0, 200)
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

/** Lets so many bytes through, and ends with an error beyond them. */
function bounded(most: number): Transform {
  let count = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      count += chunk.length
      if (count > most) done(new BadTryError(`files of up to ${most} bytes can be dropped`))
      else done(null, chunk)
    },
  })
}
