import { type Call, onAbort } from '../../base/core/call.ts'

/** How the members of a pool are made, judged and put away. */
export interface PoolOptions<Member> {
  /** Members that exist at one time, opening and closing ones included. */
  readonly size: number
  /** Members kept ready although nobody waits for them. @default 0 */
  readonly warm?: number
  open(call: Call): Promise<Member>
  close(member: Member): void | PromiseLike<void>
  /** Called before a member is handed out; an unhealthy one, or one that throws, is replaced. @default always healthy */
  isHealthy?(member: Member): boolean | PromiseLike<boolean>
  /**
   * Makes a returned member as good as new; one that throws is replaced. Without it every member
   * is used once.
   */
  renew?(member: Member): void | PromiseLike<void>
}

/** The use of one member; disposing of it gives the member back. */
export interface Lease<Member> extends AsyncDisposable {
  readonly member: Member
  /** Says that the member is not to be used again: it is closed when it is given back. */
  condemn(): void
}

/**
 * Expensive things, such as containers or browsers, opened ahead and handed out in turn. Closing
 * the pool waits for its leases. Whoever holds a lease while waiting for another, as forks do,
 * needs a pool as large as all that are held at once.
 */
export interface Pool<Member> extends AsyncDisposable {
  /** Waits in order for a member; the lease must be disposed of. */
  take(call: Call): Promise<Lease<Member>>
  readonly counts: PoolCounts
}

/** Where a pool's members are, and what became of the former ones. */
export interface PoolCounts {
  readonly ready: number
  readonly leased: number
  /** On their way in or out. */
  readonly moving: number
  readonly waiting: number
  readonly opened: number
  readonly closed: number
  /** Closed because they were found broken, or said to be. */
  readonly broken: number
}

interface Waiter<Member> {
  give(lease: Lease<Member>): void
  fail(cause: unknown): void
}

/** Opens a pool, and its first warm members in the background. */
export function openPool<Member>(options: PoolOptions<Member>): Pool<Member> {
  if (!(options.size >= 1)) throw new RangeError(`A pool of ${options.size} members has none.`)
  return new MemberPool(options)
}

class MemberPool<Member> implements Pool<Member> {
  readonly #options: PoolOptions<Member>
  readonly #ready: Member[] = []
  readonly #waiters = new Set<Waiter<Member>>()
  readonly #work = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #leased = 0
  /** How many members are being opened or checked for waiters. */
  #coming = 0
  #opened = 0
  #closed = 0
  #broken = 0
  /** Set by a failed warm-up until somebody asks again, so that it is not tried without end. */
  #hasFailedToWarm = false
  #closing: Promise<void> | undefined
  #whenEmpty: (() => void) | undefined

  constructor(options: PoolOptions<Member>) {
    this.#options = options
    this.#balance()
  }

  get counts(): PoolCounts {
    return {
      ready: this.#ready.length,
      leased: this.#leased,
      moving: this.#work.size,
      waiting: this.#waiters.size,
      opened: this.#opened,
      closed: this.#closed,
      broken: this.#broken,
    }
  }

  take({ signal }: Call): Promise<Lease<Member>> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      if (this.#stop.signal.aborted) return reject(this.#stop.signal.reason)
      const leave = (): void => {
        this.#waiters.delete(waiter)
        reject(signal.reason)
      }
      const settle = (): void => {
        this.#waiters.delete(waiter)
        stopListening()
      }
      const waiter: Waiter<Member> = {
        give(lease) {
          settle()
          resolve(lease)
        },
        fail(cause) {
          settle()
          reject(cause)
        },
      }
      const stopListening = onAbort(signal, leave)
      this.#waiters.add(waiter)
      this.#hasFailedToWarm = false
      this.#balance()
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#shut()
    return this.#closing
  }

  async #shut(): Promise<void> {
    this.#stop.abort(new Error('The pool was closed.'))
    for (const waiter of this.#waiters) waiter.fail(this.#stop.signal.reason)
    for (const member of this.#ready.splice(0)) this.#start(() => this.#close(member))
    while (this.#work.size > 0 || this.#leased > 0) {
      await Promise.all(this.#work)
      if (this.#leased > 0) {
        await new Promise<void>(resolve => {
          this.#whenEmpty = resolve
        })
      }
    }
  }

  /** Starts as much work as there are waiters to serve, warm members to keep, and room for it. */
  #balance(): void {
    if (this.#stop.signal.aborted) return
    const { size, warm = 0 } = this.#options
    while (this.#ready.length > 0 && this.#coming < this.#waiters.size) {
      const member = this.#ready.shift()!
      this.#start(() => this.#check(member), 'for a waiter')
    }
    const room = (): boolean => this.#ready.length + this.#leased + this.#work.size < size
    while (room() && this.#coming < this.#waiters.size)
      this.#start(() => this.#open(), 'for a waiter')
    const ahead = (): number => this.#ready.length + this.#work.size - this.#coming
    while (!this.#hasFailedToWarm && room() && ahead() < warm) this.#start(() => this.#open())
  }

  #start(work: () => Promise<void>, purpose?: 'for a waiter'): void {
    if (purpose) this.#coming++
    const running = work().finally(() => {
      this.#work.delete(running)
      if (purpose) this.#coming--
      this.#balance()
    })
    this.#work.add(running)
  }

  async #open(): Promise<void> {
    let member: Member
    try {
      member = await this.#options.open({ signal: this.#stop.signal })
    } catch (cause) {
      const waiter = this.#next()
      if (waiter) waiter.fail(cause)
      else this.#hasFailedToWarm = true
      return
    }
    this.#opened++
    await this.#offer(member)
  }

  async #check(member: Member): Promise<void> {
    if (await holds(() => this.#options.isHealthy?.(member) ?? true))
      return await this.#offer(member)
    this.#broken++
    await this.#close(member)
  }

  /** Gives a member to whoever waits longest, or keeps it ready. */
  async #offer(member: Member): Promise<void> {
    if (this.#stop.signal.aborted) return await this.#close(member)
    const waiter = this.#next()
    if (!waiter) {
      this.#ready.push(member)
      return
    }
    this.#leased++
    waiter.give(this.#lease(member))
  }

  #next(): Waiter<Member> | undefined {
    return this.#waiters.values().next().value
  }

  #lease(member: Member): Lease<Member> {
    let isCondemned = false
    let isBack = false
    return {
      member,
      condemn: () => {
        isCondemned = true
      },
      [Symbol.asyncDispose]: async () => {
        if (isBack) return
        isBack = true
        this.#leased--
        this.#start(() => this.#return(member, isCondemned))
        if (this.#leased === 0) this.#whenEmpty?.()
      },
    }
  }

  async #return(member: Member, isCondemned: boolean): Promise<void> {
    const { renew } = this.#options
    if (!isCondemned && renew && !this.#stop.signal.aborted) {
      const isRenewed = await holds(async () => {
        await renew.call(this.#options, member)
        return true
      })
      if (isRenewed) return await this.#offer(member)
      this.#broken++
    } else if (isCondemned) this.#broken++
    await this.#close(member)
  }

  async #close(member: Member): Promise<void> {
    this.#closed++
    await holds(async () => {
      await this.#options.close(member)
      return true
    })
  }
}

/** Whether a check passes; one that throws does not. */
async function holds(check: () => boolean | PromiseLike<boolean>): Promise<boolean> {
  try {
    return await check()
  } catch {
    return false
  }
}
