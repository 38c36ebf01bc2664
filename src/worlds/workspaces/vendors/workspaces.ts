import { randomUUID } from 'node:crypto'
import { type Call, unlessStopped } from '../../../base/core/call.ts'
import { describeCause } from '../../../base/core/failure.ts'
import { pause } from '../../../base/core/process/timer.ts'
import { isAlive, isNear, readOwner, thisProcess } from '../../../run/store/lock-owner.ts'
import {
  checkLimits,
  WorkspaceError,
  type WorkspaceLimits,
  type WorkspaceSource,
  type Workspaces,
} from '../contract.ts'
import type { Labels, Machine, Vendor } from './machine.ts'
import { type Keeping, MachineWorkspace } from './workspace.ts'

/** How machines of a vendor are kept. */
export interface VendorOptions {
  readonly limits: WorkspaceLimits
  /** Seconds after which the vendor ends a machine, whatever became of us. @default 3600 */
  readonly lease?: number | undefined
  /** Most machines that are started in a second, forks too. @default 5 */
  readonly starts?: number | undefined
  /** Seconds to wait while the vendor has no room. @default 300 */
  readonly patience?: number | undefined
  /** Seconds without a command after which a machine is paused. @default 0: never */
  readonly pause?: number | undefined
  /** What an hour of a machine costs, for the report. @default unknown */
  readonly price?: number | undefined
}

const kind: Labels = { espalier: 'workspace' }

/** Most seconds that ending a machine may be tried for. */
const endSeconds = 60

/** Workspaces that are machines of a vendor: leased, started at a bounded rate, and ended whatever happens. */
export async function vendorWorkspaces(
  vendor: Vendor,
  options: VendorOptions,
): Promise<Workspaces> {
  checkLimits(options.limits)
  const keeper = new Keeper(vendor, options, await thisProcess())
  try {
    await keeper.endOrphans()
  } catch (cause) {
    await vendor[Symbol.asyncDispose]()
    throw cause
  }
  return {
    name: vendor.name,
    isolation: { by: vendor.name, standing: ['network', 'files', 'processes'], missing: [] },
    ...(vendor.talks && { talks: vendor.talks }),
    open: (source, call) => keeper.open(source, call),
    async [Symbol.asyncDispose]() {
      try {
        await keeper.endAll()
      } finally {
        await vendor[Symbol.asyncDispose]()
      }
    },
  }
}

class Keeper implements Keeping {
  readonly name: string
  readonly limits: WorkspaceLimits
  readonly pause: number
  readonly price: number | undefined
  readonly #vendor: Vendor
  readonly #options: VendorOptions
  readonly #labels: Labels
  readonly #alive = new Map<string, Machine>()
  #nextStart = 0

  constructor(vendor: Vendor, options: VendorOptions, owner: object) {
    this.name = vendor.name
    this.limits = options.limits
    this.pause = options.pause ?? 0
    this.price = options.price
    this.#vendor = vendor
    this.#options = options
    this.#labels = {
      ...kind,
      'espalier-keeper': randomUUID(),
      'espalier-process': JSON.stringify(owner),
    }
  }

  clock = (): number => performance.now() / 1000

  async open(source: WorkspaceSource, call: Call): Promise<MachineWorkspace> {
    const { network = 'none', image } = source
    const machine = await this.#started(call, lease =>
      this.#vendor.start({
        ...lease,
        network,
        image: image && 'name' in image ? image.name : undefined,
      }),
    )
    const workspace = new MachineWorkspace(machine, source, this)
    try {
      await workspace.fill(call)
      return workspace
    } catch (cause) {
      await workspace[Symbol.asyncDispose]().catch(() => undefined)
      throw cause
    }
  }

  fork(machine: Machine, call: Call): Promise<Machine> {
    return this.#started(call, lease => machine.fork(lease))
  }

  /** Starts a machine when its turn has come, and waits while the vendor has no room. */
  async #started(
    call: Call,
    start: (lease: { labels: Labels; lease: number; signal: AbortSignal }) => Promise<Machine>,
  ): Promise<Machine> {
    const { lease = 3600, patience = 300 } = this.#options
    const giveUp = this.clock() + patience
    for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
      await this.#turn(call)
      try {
        const starting = start({ labels: this.#labels, lease, ...call })
        const machine = await unlessStopped(call, starting, late => {
          // What cannot be ended now is listed, and ended, at the end of the run.
          void late.end().catch(() => undefined)
        })
        this.#alive.set(machine.id, machine)
        return machine
      } catch (cause) {
        call.signal.throwIfAborted()
        const canWait = this.#vendor.isFull(cause) && this.clock() + wait < giveUp
        if (!canWait) throw this.#failed('start', cause)
        await pause(1000 * wait, call.signal)
      }
    }
  }

  /** Starts are spread evenly, however many are wanted at once. */
  async #turn({ signal }: Call): Promise<void> {
    const { starts = 5 } = this.#options
    const now = this.clock()
    const at = Math.max(now, this.#nextStart)
    this.#nextStart = at + 1 / starts
    if (at > now) await pause(1000 * (at - now), signal)
  }

  async end(machine: Machine): Promise<void> {
    this.#alive.delete(machine.id)
    try {
      await machine.end()
    } catch (cause) {
      // It is tried again at the end of the run; then the lease ends it.
      this.#alive.set(machine.id, machine)
      throw this.#failed('end', cause)
    }
  }

  /** Ends what processes of this machine left that are no more: they were killed before they could. */
  async endOrphans(): Promise<void> {
    for (const { id, labels } of await this.#listed(kind)) {
      const owner = readOwner(labels['espalier-process'] ?? '')
      const isOrphan = owner !== undefined && (await isNear(owner)) && !(await isAlive(owner))
      if (isOrphan) await this.#vendor.end(id).catch(() => undefined)
    }
  }

  /** Ends everything that is ours, those too whose start was never answered. */
  async endAll(): Promise<void> {
    const own = { ...kind, 'espalier-keeper': this.#labels['espalier-keeper']! }
    const giveUp = this.clock() + endSeconds
    for (let wait = 0.5; ; wait *= 2) {
      const left = await this.#listed(own).catch(() => undefined)
      const ids = new Set([...this.#alive.keys(), ...(left ?? []).map(({ id }) => id)])
      if (ids.size === 0 && left) return
      const ended = await Promise.allSettled([...ids].map(id => this.#endId(id)))
      const failed = ended.find(each => each.status === 'rejected')
      if (!failed && left) return
      if (this.clock() + wait > giveUp) throw this.#failed('end', failed?.reason ?? 'no list')
      await pause(1000 * wait, AbortSignal.timeout(2000 * endSeconds))
    }
  }

  async #endId(id: string): Promise<void> {
    await this.#vendor.end(id)
    this.#alive.delete(id)
  }

  async #listed(labels: Labels) {
    try {
      return await this.#vendor.list(labels)
    } catch (cause) {
      throw this.#failed('list', cause)
    }
  }

  #failed(what: string, cause: unknown): WorkspaceError {
    const words = describeCause(cause).slice(0, 500)
    return new WorkspaceError(`${this.name} (${what}): ${words}`, { cause })
  }
}
