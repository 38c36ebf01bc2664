import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import { unpackFolder } from '../../worlds/workspaces/archive.ts'
import {
  ImpossibleError,
  type Workspace,
  type Workspaces,
} from '../../worlds/workspaces/contract.ts'
import { mostArchive, sandboxProtocol } from '../../worlds/workspaces/remote.ts'
import { removeTree } from '../../worlds/workspaces/trees.ts'
import { Door, everybody, statusOf } from '../door/door.ts'
import { RefusedRequest } from '../door/refused-request.ts'
import type { Reply } from '../door/reply.ts'
import type { RequestHead } from '../door/request.ts'
import { tellTalk } from './sandbox-talk.ts'
import type { HostServer, HostServerOptions } from './server.ts'

/** Where the server listens, who may use it, and how much it keeps. */
export interface SandboxServerOptions extends HostServerOptions {
  /** Workspaces at one time; further requests are told to retry. @default 64 */
  readonly sessions?: number
  /** Seconds after which a workspace that nobody uses is ended. @default 3600 */
  readonly idleSeconds?: number
}

/** How archives are sent. */
const tar = 'application/x-tar'

/** What a system takes as a word of a command, a variable or a path. */
const word = z.string().refine(text => !text.includes('\0'), 'it has a NUL character')
const path = word.startsWith('/').max(1000)
const texts = z.record(word, word).optional()
const opening = z.object({
  workingFolder: path,
  variables: texts,
  network: z.enum(['none', 'outside']).optional(),
  image: z.union([z.object({ name: word }), z.object({ uploaded: z.string() })]).optional(),
})
const starting = z.object({
  command: z.array(word).min(1),
  seconds: z.number().positive().max(86_400).optional(),
  variables: texts,
})
const running = starting.extend({ input: z.base64().optional() })
/** What a command is told, or that there is no more. */
const telling = z.object({ input: z.base64() }).or(z.object({ ends: z.literal(true) }))

/** Serves workspaces of this machine to others: docs/reference/http.md has the requests. */
export async function serveSandbox(
  workspaces: Workspaces,
  options: SandboxServerOptions = {},
): Promise<HostServer> {
  const limits = { bodyBytes: mostArchive, requestSeconds: 1800 }
  const door = new Door({ ...options, host: options.host ?? '127.0.0.1', ...limits, tell })
  const open = new OpenWorkspaces(workspaces, options)
  addRoutes(door, open)
  const url = await door.listen(options.port ?? 8100)
  return {
    url,
    async [Symbol.asyncDispose]() {
      await door.close()
      await open[Symbol.asyncDispose]()
    },
  }
}

/** 500 says that this machine failed; what cannot be done as it was asked is the client's mistake. */
function tell(cause: unknown, _request: RequestHead, reply: Reply): void {
  reply.status = cause instanceof ImpossibleError ? 400 : statusOf(cause)
  reply.give({ error: describeCause(cause) })
}

function addRoutes(door: Door, open: OpenWorkspaces): void {
  const { name, isolation, buildsImages, talks } = open.workspaces
  const about = {
    protocol: sandboxProtocol,
    name,
    isolation,
    ...(buildsImages && { buildsImages }),
    ...(talks && { talks }),
  }
  door.get('/health', { admit: everybody }, async () => ({ status: 'healthy' }))
  door.get('/', async () => about)
  door.post('/images', async request => ({
    id: await open.keepImage(await request.bytes(tar)),
  }))
  door.post('/workspaces', async (request, reply) => {
    const { image, ...rest } = parse(opening, await request.json())
    const from = image && ('name' in image ? image : { build: open.image(image.uploaded) })
    const source = { ...rest, puts: [], ...(from && { image: from }) }
    return { id: await open.add(() => open.workspaces.open(source, { signal: gone(reply) })) }
  })
  door.put('/workspaces/:id/files', async (request, reply) => {
    const { id } = request.params
    const { to } = parse(z.object({ to: path }), request.query)
    const archive = await request.bytes(tar)
    await open.with(id, async ({ workspace }) => {
      await unpacked(archive, from => workspace.put({ from, to }, { signal: gone(reply) }))
    })
    return { id }
  })
  door.post('/workspaces/:id/run', async (request, reply) => {
    const { command, input, ...rest } = parse(running, await request.json())
    const given = input === undefined ? {} : { input: Buffer.from(input, 'base64') }
    return await open.with(request.params.id, ({ workspace }) =>
      workspace.run(command, { ...rest, ...given, signal: gone(reply) }),
    )
  })
  addTalks(door, open)
  door.post('/workspaces/:id/fork', async ({ params }, reply) =>
    open.with(params.id, async ({ workspace }) => ({
      id: await open.add(() => workspace.fork({ signal: gone(reply) })),
    })),
  )
  door.delete('/workspaces/:id', async ({ params }) => {
    await open.end(params.id)
    return { id: params.id }
  })
}

/** Commands that are talked to while they run. */
function addTalks(door: Door, open: OpenWorkspaces): void {
  door.post('/workspaces/:id/start', async (request, reply) => {
    const { command, ...rest } = parse(starting, await request.json())
    await open.with(request.params.id, async ({ workspace, talks }) => {
      if (!workspace.start) throw new ImpossibleError('no command here can be talked to')
      const talk = randomUUID()
      const started = workspace.start(command, { ...rest, signal: gone(reply) })
      talks.set(talk, started.input)
      reply.begin('application/x-ndjson')
      await tellTalk(started, talk, reply)
      talks.delete(talk)
    })
  })
  door.post('/workspaces/:id/talks/:talk', async request => {
    const { id, talk } = request.params
    const told = parse(telling, await request.json())
    await open.with(id, async ({ talks }) => {
      const input = talks.get(talk)
      if (!input) throw new RefusedRequest(404, 'no such command: it has ended')
      if ('ends' in told) input.end()
      else if (!input.write(Buffer.from(told.input, 'base64'))) await drained(input)
    })
    return { id }
  })
}

/** Resolves when more can be written, or nothing any more. */
function drained(input: Writable): Promise<void> {
  return new Promise(resolve => {
    input.once('drain', resolve).once('close', resolve)
  })
}

interface OpenWorkspace {
  readonly workspace: Workspace
  /** What commands that are talked to read, by the names of their talks. */
  readonly talks: Map<string, Writable>
  users: number
  /** When somebody last used it. */
  used: number
}

/** The open workspaces, by names that cannot be guessed. */
class OpenWorkspaces implements AsyncDisposable {
  readonly workspaces: Workspaces
  readonly #open = new Map<string, OpenWorkspace>()
  readonly #images = new Map<string, string>()
  readonly #most: number
  readonly #timer: NodeJS.Timeout
  #opening = 0

  constructor(workspaces: Workspaces, { sessions = 64, idleSeconds = 3600 }: SandboxServerOptions) {
    this.workspaces = workspaces
    this.#most = sessions
    this.#timer = setInterval(() => void this.#sweep(idleSeconds), 10_000)
    this.#timer.unref()
  }

  async add(open: () => Promise<Workspace>): Promise<string> {
    if (this.#open.size + this.#opening >= this.#most) {
      throw new RefusedRequest(503, `all ${this.#most} workspaces are in use: come again`)
    }
    this.#opening++
    try {
      const id = randomUUID()
      const workspace = await open()
      this.#open.set(id, { workspace, talks: new Map(), users: 0, used: performance.now() })
      return id
    } finally {
      this.#opening--
    }
  }

  async with<T>(id: string, work: (found: OpenWorkspace) => Promise<T>): Promise<T> {
    const found = this.#open.get(id)
    if (!found) throw new RefusedRequest(404, 'no such workspace: it was ended, or left idle')
    found.users++
    try {
      return await work(found)
    } finally {
      found.users--
      found.used = performance.now()
    }
  }

  async end(id: string): Promise<void> {
    const found = this.#open.get(id)
    this.#open.delete(id)
    await found?.workspace[Symbol.asyncDispose]()
  }

  /** Keeps the folder that an image is built from; one that is sent again is kept once. */
  async keepImage(archive: Buffer): Promise<string> {
    const id = createHash('sha256').update(archive).digest('hex')
    if (this.#images.has(id)) return id
    const folder = await mkdtemp(join(tmpdir(), 'espalier-image-'))
    try {
      await unpackFolder(archive, folder, { signal: AbortSignal.timeout(600_000) })
    } catch (cause) {
      await removeTree(folder)
      throw cause
    }
    this.#images.set(id, folder)
    return id
  }

  image(id: string): string {
    const folder = this.#images.get(id)
    if (folder === undefined) throw new RefusedRequest(404, 'no such image: send it again')
    return folder
  }

  async #sweep(idleSeconds: number): Promise<void> {
    const since = performance.now() - idleSeconds * 1000
    for (const [id, { users, used }] of this.#open) {
      if (users === 0 && used < since) await this.end(id).catch(() => undefined)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    for (const id of [...this.#open.keys()]) await this.end(id)
    for (const folder of this.#images.values()) await removeTree(folder)
    await this.workspaces[Symbol.asyncDispose]()
  }
}

/** Aborts when the client goes away before its answer, so that its request is stopped. */
function gone(reply: Reply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new Error('the client went away'))
  })
  return controller.signal
}

async function unpacked(archive: Buffer, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-put-'))
  try {
    await unpackFolder(archive, folder, { signal: AbortSignal.timeout(600_000) })
    await work(folder)
  } finally {
    await removeTree(folder)
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw new RefusedRequest(400, z.prettifyError(result.error).replaceAll('\n', ' '))
}
