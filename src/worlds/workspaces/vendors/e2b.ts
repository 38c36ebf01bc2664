import type { ConnectionOpts, Sandbox } from 'e2b'
import { missingPackage } from '../../../base/core/names/missing-package.ts'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import type { Workspaces } from '../contract.ts'
import type { ListedMachine, Machine, MachineSource, Vendor } from './machine.ts'
import { type VendorOptions, vendorWorkspaces } from './workspaces.ts'

/** E2B's service, or one that speaks its protocol. */
export interface E2bOptions extends VendorOptions {
  readonly key: string
  /** What machines are made from. @default 'base' */
  readonly template?: string | undefined
  /** The domain of a service of your own. @default e2b.app */
  readonly domain?: string | undefined
  /** The addresses of a service that has no domain: of its API, and of its machines. */
  readonly api?: string | undefined
  readonly machines?: string | undefined
  /** How a machine is copied: `snapshot` for services that know no forks. @default 'fork' */
  readonly fork?: 'fork' | 'snapshot' | undefined
}

const importSdk = () => import('e2b')
type Sdk = Awaited<ReturnType<typeof importSdk>>

/** Workspaces in E2B's microVMs, which are forked as they run. */
export async function e2bWorkspaces(options: E2bOptions): Promise<Workspaces> {
  keepSecret(options.key)
  const sdk = await importSdk().catch(cause => {
    throw missingPackage('the sandbox e2b', 'e2b', cause)
  })
  return await vendorWorkspaces(new E2b(sdk, options), options)
}

class E2b implements Vendor {
  readonly name = 'e2b'
  readonly talks = true
  readonly #sdk: Sdk
  readonly #options: E2bOptions
  readonly #connection: ConnectionOpts

  constructor(sdk: Sdk, options: E2bOptions) {
    const { key: apiKey, domain, api: apiUrl, machines: sandboxUrl } = options
    this.#sdk = sdk
    this.#options = options
    this.#connection = {
      apiKey,
      ...(domain !== undefined && { domain }),
      ...(apiUrl !== undefined && { apiUrl }),
      ...(sandboxUrl !== undefined && { sandboxUrl }),
    }
  }

  async start({ labels, network, lease, signal }: MachineSource): Promise<Machine> {
    const { template = 'base' } = this.#options
    return this.#machine(
      await this.#sdk.Sandbox.create(template, {
        ...this.#connection,
        metadata: { ...labels },
        timeoutMs: lease * 1000,
        allowInternetAccess: network === 'outside',
        signal,
      }),
    )
  }

  #machine(sandbox: Sandbox): Machine {
    const id = sandbox.sandboxId
    return {
      id,
      async shell(line, { signal, seconds }) {
        const call = { user: 'root', cwd: '/', timeoutMs: seconds * 1000, signal } as const
        return (await sandbox.commands.run(line, call)).stdout
      },
      async talk(line, { signal, seconds, onOutput }) {
        const how = { user: 'root', cwd: '/', timeoutMs: seconds * 1000, signal } as const
        const asked = { ...how, background: true, stdin: true, onStdout: onOutput } as const
        const handle = await sandbox.commands.run(line, asked)
        return {
          write: part => handle.sendStdin(part),
          finish: () => handle.closeStdin(),
          ended: handle.wait().then(
            ({ exitCode }) => exitCode,
            cause => {
              if (cause instanceof Error && 'exitCode' in cause) return Number(cause.exitCode)
              throw cause
            },
          ),
        }
      },
      async upload(path, bytes, { signal }) {
        const content = new Uint8Array(bytes).buffer
        await sandbox.files.write(path, content, { user: 'root', signal })
      },
      fork: source => this.#fork(sandbox, source),
      async pause() {
        await sandbox.pause()
      },
      async resume() {
        await sandbox.connect()
      },
      end: () => this.end(id),
    }
  }

  async #fork(
    sandbox: Sandbox,
    source: Pick<MachineSource, 'labels' | 'lease' | 'signal'>,
  ): Promise<Machine> {
    if (this.#options.fork === 'snapshot') return await this.#forkBySnapshot(sandbox, source)
    const { lease, signal } = source
    const [copy] = await sandbox.fork({ count: 1, timeoutMs: lease * 1000, signal })
    if (copy instanceof this.#sdk.Sandbox) return this.#machine(copy)
    throw copy ?? new Error('nothing was forked')
  }

  async #forkBySnapshot(
    sandbox: Sandbox,
    { labels, lease, signal }: Pick<MachineSource, 'labels' | 'lease' | 'signal'>,
  ): Promise<Machine> {
    const { snapshotId } = await sandbox.createSnapshot({ signal })
    try {
      const { allowInternetAccess = false } = await sandbox.getInfo()
      const started = { metadata: { ...labels }, timeoutMs: lease * 1000, allowInternetAccess }
      const options = { ...this.#connection, ...started, signal }
      return this.#machine(await this.#sdk.Sandbox.create(snapshotId, options))
    } finally {
      await this.#sdk.Sandbox.deleteSnapshot(snapshotId, this.#connection)
    }
  }

  async list(labels: Readonly<Record<string, string>>): Promise<readonly ListedMachine[]> {
    const pages = this.#sdk.Sandbox.list({
      ...this.#connection,
      query: { metadata: { ...labels } },
    })
    const found: ListedMachine[] = []
    while (pages.hasNext) {
      for (const { sandboxId: id, metadata } of await pages.nextItems())
        found.push({ id, labels: metadata })
    }
    return found
  }

  async end(id: string): Promise<void> {
    await this.#sdk.Sandbox.kill(id, this.#connection)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve()
  }

  isFull(cause: unknown): boolean {
    return cause instanceof this.#sdk.RateLimitError
  }
}
