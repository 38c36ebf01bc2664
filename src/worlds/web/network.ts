import { once } from 'node:events'
import { request as ask, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describeCause } from '../../base/core/failure.ts'

/** Answers what a browser asks a site for. */
export type Serve = (request: Request) => Response | Promise<Response>

/** What the pages of one world can reach; everything else is refused. */
export interface Reach {
  /** Sites that are answered by this process, by host: `shop.test`. They are HTTP only. */
  readonly sites: Readonly<Record<string, Serve>>
  /** Hosts beyond it: `example.com` (ports 80 and 443), `localhost:3000`, `*.example.com`. */
  readonly hosts: readonly string[]
}

/** The only way out of the browser of one world: a proxy on loopback. */
export interface Network extends AsyncDisposable {
  readonly url: string
  /** Hosts that were asked for and refused. */
  readonly refused: ReadonlySet<string>
  /** How many answers are on their way; those through a tunnel are not seen. */
  loading(): number
}

/** Most bytes of a form that a page sends to a site, and of everything that a world loads. */
const mostSent = 2 ** 20
const mostLoaded = 256 * 2 ** 20

/** Hosts that are kept of those refused. */
const mostRefused = 100

/** Opens the proxy through which one world loads its pages. */
export async function openNetwork(reach: Reach): Promise<Network> {
  const refused = new Set<string>()
  const sockets = new Set<Socket>()
  const gate = new Gate(reach, refused)
  let loading = 0
  const server = createServer((request, response) => {
    loading++
    response.once('close', () => loading--)
    void gate.answer(request, response)
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => gate.tunnel(request, socket))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    refused,
    loading: () => loading,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Whether a host and port are among those named. */
export function isNamed(hosts: readonly string[], host: string, port: number): boolean {
  return hosts.some(named => {
    const [, name = '', of] = /^(.*?)(?::(\d+))?$/.exec(named.toLowerCase()) ?? []
    const isPort = of === undefined ? port === 80 || port === 443 : Number(of) === port
    return isPort && (name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name)
  })
}

/** Lets through what is named, and counts what is loaded. */
class Gate {
  readonly #reach: Reach
  readonly #refused: Set<string>
  #loaded = 0

  constructor(reach: Reach, refused: Set<string>) {
    this.#reach = reach
    this.#refused = refused
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = URL.canParse(request.url ?? '') ? new URL(request.url!) : undefined
      if (url?.protocol !== 'http:') return end(response, 400, 'this is the proxy of a browser')
      const serve = Object.hasOwn(this.#reach.sites, url.host)
        ? this.#reach.sites[url.host]
        : undefined
      if (serve) await this.#serve(serve, url, request, response)
      else if (this.#isOpen(url.hostname, Number(url.port || 80)))
        this.#forward(url, request, response)
      else end(response, 403, `${url.host} is not within the network of this world`)
    } catch (cause) {
      end(response, 500, describeCause(cause))
    }
  }

  tunnel(request: IncomingMessage, socket: Socket): void {
    const [, host = '', port] = /^(.+):(\d+)$/.exec(request.url ?? '') ?? []
    if (!this.#isOpen(host, Number(port))) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      return
    }
    const far = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      socket.pipe(far).pipe(socket)
    })
    const close = (): void => {
      far.destroy()
      socket.destroy()
    }
    far.on('data', (part: Buffer) => this.#count(part.length) || close())
    far.on('error', close).on('close', close)
    socket.on('error', close).on('close', close)
  }

  #isOpen(host: string, port: number): boolean {
    if (isNamed(this.#reach.hosts, host.toLowerCase(), port)) return true
    if (this.#refused.size < mostRefused) this.#refused.add(`${host}:${port}`.slice(0, 300))
    return false
  }

  /** Whether there is room for so many bytes more. */
  #count(bytes: number): boolean {
    this.#loaded += bytes
    return this.#loaded <= mostLoaded
  }

  async #serve(serve: Serve, url: URL, request: IncomingMessage, response: ServerResponse) {
    const { method = 'GET', headers } = request
    const body = await bodyOf(request)
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    )
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const answer = await serve(
      new Request(url, { method, headers: given, ...(hasBody && { body: new Uint8Array(body) }) }),
    )
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (!this.#count(bytes.length)) return end(response, 403, 'this world has loaded too much')
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(bytes)
  }

  #forward(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const { 'proxy-connection': _, ...headers } = request.headers
    const onward = ask(url, { method: request.method, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('data', (part: Buffer) => this.#count(part.length) || onward.destroy())
      answer.pipe(response)
    })
    onward.on('error', cause => end(response, 502, describeCause(cause)))
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length
    if (size > mostSent) throw new Error(`a page sent more than ${mostSent} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function end(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) response.destroy()
  else response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text)
}
