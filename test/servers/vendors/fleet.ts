import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type WebSocket, WebSocketServer } from 'ws'
import type { StartedCommand } from '../../../src/worlds/sandboxes/run.ts'
import { usualLimits, type Workspace } from '../../../src/worlds/workspaces/contract.ts'
import { localWorkspaces } from '../../../src/worlds/workspaces/local.ts'

/** A machine of a vendor that runs here: folders within walls. */
export interface FleetMachine {
  readonly id: string
  readonly workspace: Workspace
  labels: Readonly<Record<string, string>>
  state: 'running' | 'paused'
  /** Seconds it may live. */
  lease: number
  readonly network: boolean
}

/** By which programs with a network know hosts here, if they are told. */
const certificates = Object.fromEntries(
  ['NODE_EXTRA_CA_CERTS', 'PIP_CERT'].flatMap(name => {
    const path = process.env[name]
    return path === undefined ? [] : [[name, path]]
  }),
)

/** What a vendor's server was asked for, and what it is told to do wrong. */
export class Fleet implements AsyncDisposable {
  readonly machines = new Map<string, FleetMachine>()
  /** One word for every machine that was started, forked, paused, resumed or ended, in order. */
  readonly happened: string[] = []
  /** Answers the next requests to start a machine with this instead. */
  readonly refusals: { readonly status: number; readonly message: string }[] = []
  /** Machines are started, but nobody is told of them before this. */
  held: Promise<void> | undefined
  /** Commands that are talked to, by their process id less 1. */
  readonly talks: StartedCommand[] = []
  readonly #limits = { ...usualLimits, outputBytes: 10_000_000, seconds: 900, disk: 4096 }
  readonly #stop = new AbortController()
  /** Tells the commands of a machine that it has ended. */
  readonly #ended = new EventEmitter()

  async start(from: Pick<FleetMachine, 'labels' | 'lease' | 'network'>): Promise<FleetMachine> {
    const empty = mkdtempSync(join(tmpdir(), 'machine-'))
    const puts = ['/agent', '/var', '/tests'].map(to => ({ from: empty, to }))
    const network: 'outside' | 'none' = from.network ? 'outside' : 'none'
    const variables = from.network ? certificates : {}
    const source = { puts, workingFolder: '/agent', network, variables }
    const workspace = await localWorkspaces({ limits: this.#limits }).open(source, this.#stop)
    this.happened.push('started')
    const machine = this.#add({ ...from, workspace })
    await this.held
    return machine
  }

  #add(of: Omit<FleetMachine, 'id' | 'state'>): FleetMachine {
    const machine: FleetMachine = { ...of, id: randomUUID().replaceAll('-', ''), state: 'running' }
    this.machines.set(machine.id, machine)
    return machine
  }

  async fork(id: string, lease: number): Promise<FleetMachine> {
    const machine = this.machines.get(id)!
    const workspace = await machine.workspace.fork(this.#stop)
    this.happened.push('forked')
    return this.#add({ ...machine, workspace, lease })
  }

  turn(id: string, state: FleetMachine['state']): void {
    this.machines.get(id)!.state = state
    this.happened.push(state === 'paused' ? 'paused' : 'resumed')
  }

  async end(id: string): Promise<void> {
    const machine = this.machines.get(id)
    this.machines.delete(id)
    this.#ended.emit(id)
    this.happened.push('ended')
    await machine?.workspace[Symbol.asyncDispose]()
  }

  /** Runs a line of shell on a machine, until whoever asked has gone. */
  async shell(id: string, line: string, gone: AbortSignal) {
    const signal = AbortSignal.any([gone, this.#stop.signal])
    return await this.machines.get(id)!.workspace.run(['/bin/bash', '-c', line], { signal })
  }

  /** Starts a line of shell that is talked to; what is asked for by its number later. */
  talk(id: string, line: string, gone?: AbortSignal): StartedCommand {
    const ended = new AbortController()
    this.#ended.once(id, () => ended.abort())
    const signals = [this.#stop.signal, ended.signal, ...(gone ? [gone] : [])]
    const signal = AbortSignal.any(signals)
    const started = this.machines.get(id)!.workspace.start!(['/bin/bash', '-c', line], { signal })
    this.talks.push(started)
    return started
  }

  async write(id: string, path: string, bytes: Buffer): Promise<void> {
    const words = ['/bin/sh', '-c', 'mkdir -p "$(dirname "$1")" && cat > "$1"', 'sh', path]
    await this.machines
      .get(id)!
      .workspace.run(words, { ...this.#stop, signal: this.#stop.signal, input: bytes })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    for (const id of [...this.machines.keys()]) await this.end(id)
  }
}

/** A request as a vendor's server reads it. */
export interface Asked {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Aborts when whoever asked has gone. */
  readonly gone: AbortSignal
  readonly response: ServerResponse
}

/** A vendor's server on loopback. */
export interface VendorServer extends AsyncDisposable {
  readonly vendor: 'e2b' | 'daytona'
  readonly url: string
  readonly fleet: Fleet
}

/** Serves a vendor's protocol; what an answer gives is sent as JSON, unless it answered itself. */
export async function serveVendor(
  vendor: VendorServer['vendor'],
  answer: (
    asked: Asked,
    fleet: Fleet,
  ) => Promise<{ readonly status: number; readonly json?: unknown } | undefined>,
  follow?: (url: URL, socket: WebSocket, fleet: Fleet) => Promise<void>,
): Promise<VendorServer> {
  const fleet = new Fleet()
  const server = createServer(async (request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const url = new URL(request.url!, 'http://here')
    const { method = '', headers } = request
    const asked = { method, url, headers, body: Buffer.concat(parts), gone: gone.signal, response }
    const answered = await answer(asked, fleet).catch(cause => ({
      status: 500,
      json: { code: 500, message: String(cause) },
    }))
    if (!answered || response.destroyed) return
    response.writeHead(answered.status, { 'content-type': 'application/json' })
    response.end(answered.json === undefined ? '' : JSON.stringify(answered.json))
  })
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, connection, head) => {
    const url = new URL(request.url!, 'http://here')
    if (!follow || !url.pathname.endsWith('/logs')) return connection.destroy()
    return sockets.handleUpgrade(request, connection, head, socket => {
      void follow(url, socket, fleet)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    vendor,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fleet,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await fleet[Symbol.asyncDispose]()
    },
  }
}
