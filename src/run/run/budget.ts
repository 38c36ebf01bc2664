import { aroundPolicy, type Draw } from '../../base/core/around.ts'
import { steadySeconds } from '../../base/core/call.ts'
import type { Sample } from '../../base/core/policy.ts'
import { startTimer } from '../../base/core/process/timer.ts'
import { sampled } from '../../base/core/segment.ts'
import type { Instrument, Limits } from '../../engine/rollout/attempt.ts'
import { tokensOf } from '../store/attempt-record.ts'
import { RunStoppedError, type StopKind } from '../watch/stopped.ts'

/** What a whole run may cost. */
export interface BudgetLimits {
  /** Sampled tokens. */
  readonly tokens?: number | undefined
  readonly seconds?: number | undefined
  readonly trajectories?: number | undefined
  /** In the currency of `price`. */
  readonly money?: number | undefined
  /** Of a million tokens. */
  readonly price?: { readonly prompt: number; readonly sampled: number } | undefined
  /** What one attempt may cost; it is truncated there (`guard:money`). */
  readonly perRollout?: { readonly money?: number | undefined } | undefined
}

/** What a run has cost. */
export interface Spent {
  readonly tokens: number
  readonly trajectories: number
  readonly money: number
}

/** Reserves what a run will cost before it is spent, and stops the run at a limit. */
export interface Budget extends Disposable {
  /** Aborts with a `RunStoppedError` when a limit is spent. */
  readonly signal: AbortSignal
  /** Reserves tokens and money around every sample. */
  readonly instrument: Instrument
  /** Reserves trajectories for a group; returns whether that many were left. */
  admit(trajectories: number): boolean
  /** Counts the trajectories that a group used, and releases the rest of its reservation. */
  settle(reserved: number, used: number): void
  /** Reserves the most that an attempt elsewhere may cost; undefined if samples are not counted. */
  lend(most: LoanLimits, signal: AbortSignal): Promise<Loan | undefined>
  /**
   * Reserves what a whole group elsewhere may cost, without waiting: undefined if samples are not counted, false if less
   * is left than it may cost, so that its attempts are better lent to one by one.
   */
  lease(most: LoanLimits): Loan | undefined | false
  /** Ends the run: gives the error that says which limit was reached. */
  end(kind: SpentKind): RunStoppedError
}

/** The bounds of an attempt, from which its highest cost follows. */
export interface LoanLimits {
  readonly limits: Limits
  /** Most trajectories of one tree. */
  readonly leaves: number
}

/** What an attempt elsewhere may cost. */
export interface Loan {
  readonly allowance: BudgetLimits
  /** Counts its real cost, and gives back the rest. */
  settle(used: { readonly prompt: number; readonly sampled: number }): void
  end(kind: SpentKind): RunStoppedError
}

/** What can be spent. */
export type SpentKind = Extract<StopKind, 'tokens' | 'seconds' | 'trajectories' | 'money'>

/** What a budget begins with. */
export interface BudgetOptions {
  /** What the run had cost before it was resumed. */
  readonly spent?: Spent
  /** Seconds on a clock that never runs backwards. */
  readonly clock?: () => number
}

/** Opens the budget of a run; its clock starts now. */
export function openBudget(limits: BudgetLimits, options: BudgetOptions = {}): Budget {
  const { clock = steadySeconds } = options
  if ((limits.money ?? limits.perRollout?.money) !== undefined && !limits.price) {
    throw new Error(
      'a budget of money needs a price: budget.price = { prompt, sampled } per million',
    )
  }
  const account = makeAccount(limits, options.spent)
  const stop = new AbortController()
  const started = clock()
  const end = (kind: SpentKind): RunStoppedError => {
    const used = kind === 'seconds' ? clock() - started : account.spent[kind]
    const amount = Math.round(used * 1e6) / 1e6
    const message = `the budget of ${limits[kind]} ${kind} is spent (${amount} used)`
    const error = new RunStoppedError(kind, message)
    stop.abort(error)
    return error
  }
  const timer =
    limits.seconds === undefined
      ? undefined
      : startTimer(() => end('seconds'), limits.seconds * 1000)
  return {
    signal: stop.signal,
    end,
    instrument: context => {
      if (!isPaid(limits)) return context
      const own = { money: 0 }
      const draw = (each: Draw): Promise<readonly Sample[]> =>
        drawWithin(each, { account, own, limits, end })
      return { ...context, policy: aroundPolicy(context.policy, { draw }) }
    },
    async lend(most, signal) {
      if (!isPaid(limits)) return undefined
      return await lend(worstCost(limits, most), { account, limits, end }, signal)
    },
    lease(most) {
      if (!isPaid(limits)) return undefined
      const asking = askingFor(worstCost(limits, most))
      const lent = account.setAsideNow(asking)
      return lent ? loanOf(lent, { account, limits, end }) : false
    },
    admit: account.admit,
    settle: account.settle,
    [Symbol.dispose]: () => clearTimeout(timer),
  }
}

/** Whether samples are counted before they are drawn; seconds and trajectories need no such count. */
function isPaid({ tokens, money, perRollout }: BudgetLimits): boolean {
  return (tokens ?? money ?? perRollout?.money) !== undefined
}

interface Amounts {
  readonly tokens: number
  readonly money: number
}

/** What an attempt costs at most: every turn with a full context, every token that it may sample. */
function worstCost(limits: BudgetLimits, { limits: bounds, leaves }: LoanLimits): Amounts {
  const tokens = bounds.tokens * leaves
  const prompt = bounds.turns * bounds.context * leaves
  const { money: own = Number.POSITIVE_INFINITY } = limits.perRollout ?? {}
  return { tokens, money: Math.min(own, moneyOf(limits, { prompt, sampled: tokens })) }
}

/** Lends an attempt the most it can cost; less only if no other reservation can be given back. */
async function lend(
  want: Amounts,
  { account, limits, end }: Omit<Drawing, 'own'>,
  signal: AbortSignal,
): Promise<Loan> {
  const lent = await account.setAside(askingFor(want), signal)
  const isBroke = limits.money !== undefined && lent.money === 0
  if (isBroke || lent.tokens === 0) {
    account.release(lent, { prompt: 0, sampled: 0 })
    throw end(account.scarce())
  }
  return loanOf(lent, { account, limits, end })
}

/** Asks for so much, or for what is left. */
function askingFor(want: Amounts): Asking<Amounts> {
  return {
    isShort: ({ tokens, money }) => tokens < want.tokens || money < want.money,
    grant: ({ tokens, money }) => ({
      tokens: Math.max(0, Math.min(want.tokens, tokens)),
      money: Math.max(0, Math.min(want.money, money)),
    }),
  }
}

function loanOf(lent: Amounts, { account, limits, end }: Omit<Drawing, 'own'>): Loan {
  return {
    allowance: allowanceOf(limits, lent),
    settle: used => account.release(lent, used),
    end,
  }
}

/** The budget of one attempt out of that of the run. */
function allowanceOf(limits: BudgetLimits, { tokens, money }: Amounts): BudgetLimits {
  const { price, perRollout } = limits
  return {
    ...(limits.tokens !== undefined && { tokens }),
    ...(limits.money !== undefined && { money }),
    ...(price && { price }),
    ...(perRollout && { perRollout }),
  }
}

interface Drawing {
  readonly account: Account
  /** What this attempt has cost. */
  readonly own: { money: number }
  readonly limits: BudgetLimits
  end(kind: SpentKind): RunStoppedError
}

/** Reserves, asks for at most what was granted, and gives back what was not used. */
async function drawWithin(draw: Draw, drawing: Drawing): Promise<readonly Sample[]> {
  const { account, own, limits, end } = drawing
  const { request, seeds, call } = draw
  const prompt = request.prompt.ids.length * seeds.length
  const left = (limits.perRollout?.money ?? Number.POSITIVE_INFINITY) - own.money
  const wanted = Math.min(request.maxTokens, perSeed(affordable(limits, left, prompt), seeds))
  if (wanted <= 0) return seeds.map(() => stoppedSample)
  const reserved = await reserve({ prompt, sampled: wanted * seeds.length }, drawing, call.signal)
  let used: Cost = { prompt: 0, sampled: 0 }
  try {
    const maxTokens = perSeed(reserved.tokens, seeds)
    if (maxTokens <= 0) throw end(account.scarce())
    const samples = await draw.ask({ maxTokens })
    used = { prompt, sampled: samples.reduce((sum, sample) => sum + tokensOf(sample), 0) }
    const isCut = samples.some(({ finish }) => finish.kind === 'length')
    if (isCut && maxTokens < wanted) throw end(account.scarce())
    return samples
  } finally {
    own.money += moneyOf(limits, used)
    account.release(reserved, used)
  }
}

/** Waits while others may give something back; grants less only if nobody can. */
function reserve(
  { prompt, sampled }: Cost,
  { account, limits }: Pick<Drawing, 'account' | 'limits'>,
  signal: AbortSignal,
): Promise<Amounts> {
  const free = ({ tokens, money }: Amounts): number =>
    Math.min(tokens, affordable(limits, money, prompt))
  const asking: Asking<Amounts> = {
    isShort: left => free(left) < sampled,
    grant(left) {
      const tokens = Math.max(0, Math.min(sampled, free(left)))
      return { tokens, money: moneyOf(limits, { prompt, sampled: tokens }) }
    },
  }
  return account.setAside(asking, signal)
}

const perSeed = (tokens: number, seeds: readonly number[]): number =>
  Math.floor(tokens / seeds.length)

/** The empty sample for an attempt that cannot pay for another token. */
const stoppedSample: Sample = {
  kind: 'tokens',
  segment: sampled({
    ids: new Int32Array(0),
    logprobs: new Float32Array(0),
    version: { from: 0, to: 0 },
  }),
  finish: { kind: 'guard', guard: 'money' },
  usage: { prompt: 0, sampled: 0, seconds: 0 },
}

interface Cost {
  readonly prompt: number
  readonly sampled: number
}

function moneyOf({ price }: BudgetLimits, { prompt, sampled }: Cost): number {
  return price ? (prompt * price.prompt + sampled * price.sampled) / 1e6 : 0
}

/** Tokens that so much money pays for behind a prompt. */
function affordable({ price }: BudgetLimits, money: number, prompt: number): number {
  if (!price || money === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
  const left = money - (prompt * price.prompt) / 1e6
  if (left < 0) return 0
  return price.sampled === 0 ? Number.POSITIVE_INFINITY : Math.floor((left / price.sampled) * 1e6)
}

type Account = ReturnType<typeof makeAccount>

/** A request for a reservation. */
interface Asking<T extends Amounts> {
  isShort(left: Amounts): boolean
  /** The amount to take, given what is left; called if there is enough or nobody can give anything back. */
  grant(left: Amounts): T
}

/** Tracks what is spent and what is reserved. Reserved amounts are never granted twice. */
function makeAccount(limits: BudgetLimits, before?: Spent) {
  const spent = { tokens: 0, trajectories: 0, money: 0, ...before }
  const reserved = { tokens: 0, trajectories: 0, money: 0, holders: 0 }
  const { tokens = Number.POSITIVE_INFINITY, money = Number.POSITIVE_INFINITY } = limits
  const { trajectories = Number.POSITIVE_INFINITY } = limits
  let waiting: (() => void)[] = []

  const left = (): Amounts => ({
    tokens: tokens - spent.tokens - reserved.tokens,
    money: money - spent.money - reserved.money,
  })
  const take = <T extends Amounts>(asking: Asking<T>): T => {
    const amounts = asking.grant(left())
    reserved.holders++
    reserved.tokens += amounts.tokens
    reserved.money += amounts.money
    return amounts
  }
  return {
    spent,
    /** Waits while there is too little and others may give something back; then reserves what there is. */
    async setAside<T extends Amounts>(asking: Asking<T>, signal: AbortSignal): Promise<T> {
      while (asking.isShort(left()) && reserved.holders > 0) {
        signal.throwIfAborted()
        await new Promise<void>(resolve => waiting.push(resolve))
      }
      return take(asking)
    },
    /** Reserves only if there is enough. */
    setAsideNow<T extends Amounts>(asking: Asking<T>): T | undefined {
      return asking.isShort(left()) ? undefined : take(asking)
    },
    release(amounts: Amounts, used: Cost): void {
      reserved.holders--
      reserved.tokens -= amounts.tokens
      reserved.money -= amounts.money
      spent.tokens += used.sampled
      spent.money += moneyOf(limits, used)
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    },
    /** Which limit keeps the next sample from being drawn. */
    scarce(): SpentKind {
      return left().tokens <= affordable(limits, left().money, 0) ? 'tokens' : 'money'
    },
    admit(count: number): boolean {
      if (spent.trajectories + reserved.trajectories + count > trajectories) return false
      reserved.trajectories += count
      return true
    },
    settle(count: number, used: number): void {
      reserved.trajectories -= count
      spent.trajectories += used
    },
  }
}
