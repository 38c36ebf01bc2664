import type { Call } from '../../base/core/call.ts'
import type {
  Policy,
  PolicyCapabilities,
  PolicyDescription,
  Sample,
} from '../../base/core/policy.ts'
import { type Clock, systemClock } from '../../base/core/process/clock.ts'
import { awayReason, isPassing } from './transport/server-error.ts'

/** How servers share the load. */
export interface BalanceOptions {
  /**
   * How many more requests than the least busy server a session's own server may have before the
   * session moves: its prefix is cached there, but not at any price. @default 16
   */
  readonly slack?: number
  /** Seconds a server that failed is left alone, doubled for each further failure. @default 1 */
  readonly restSeconds?: number
  /** @default 60 */
  readonly longestRestSeconds?: number
  readonly clock?: Clock
  /** Hears of a server that is away while others are there, and that it is back. */
  readonly onMoved?: (server: string, why: string | undefined) => void
}

interface Member {
  readonly policy: Policy
  running: number
  /** Failures in a row. */
  failures: number
  /** When it may be tried again, in milliseconds. */
  restsUntil: number
  /** Whether others were told that it is away. */
  isMissed: boolean
}

/** Sessions whose server is remembered. */
const remembered = 100_000

/**
 * One policy over several servers: each request goes to its session's server while that is not much
 * busier than the others, else to the least busy one. A server that fails is left alone for a
 * while and then tried again. Failures are thrown on: retries belong around this.
 */
export function withBalance(policies: readonly Policy[], options: BalanceOptions = {}): Policy {
  const settings = {
    slack: 16,
    restSeconds: 1,
    longestRestSeconds: 60,
    clock: systemClock,
    onMoved: () => {},
    ...options,
  }
  const members = policies.map(policy => ({
    policy,
    running: 0,
    failures: 0,
    restsUntil: 0,
    isMissed: false,
  }))
  const capabilities = commonCapabilities(policies)
  const run = makeRunner(members, settings)

  return {
    name: policies.map(({ name }) => name).join(' '),
    capabilities,
    members: policies,
    async sample(request, call) {
      const [sample, { policy }] = await run(request.session, each => each.sample(request, call))
      return from(sample, policy)
    },
    ...(capabilities.several && {
      async sampleSeveral(request, seeds, call) {
        const [samples, { policy }] = await run(request.session, each =>
          each.sampleSeveral!(request, seeds, call),
        )
        return samples.map(sample => from(sample, policy))
      },
    }),
    ...(capabilities.score && {
      async score(ids, place, scoring, call) {
        const [scores] = await run(scoring.session ?? '', each =>
          each.score!(ids, place, scoring, call),
        )
        return scores
      },
    }),
    describe: call => describeAll(policies, call),
    ...(policies.every(({ weights }) => weights) && {
      weights: {
        // One server after the other: if all were paused at once, a failure would leave none running.
        async update(written, call) {
          for (const { weights } of policies) await weights!.update(written, call)
        },
      },
    }),
    ...(policies.every(({ prefixCache }) => prefixCache) && {
      async prefixCache(call) {
        const counts = await Promise.all(policies.map(each => each.prefixCache!(call)))
        return counts.reduce(
          (sum, each) =>
            sum && each && { asked: sum.asked + each.asked, found: sum.found + each.found },
        )
      },
    }),
    ...(policies.some(({ pressure }) => pressure) && {
      async pressure(call) {
        const told = await Promise.all(policies.map(each => each.pressure?.(call)))
        const known = told.filter(each => each !== undefined)
        return known.length === 0 ? undefined : Math.max(...known)
      },
    }),
    takeLogprobs(found) {
      for (const { takeLogprobs } of policies) takeLogprobs?.(found)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(policies.map(policy => policy[Symbol.asyncDispose]()))
    },
  }
}

/** Sends requests to the servers; one that a server which is away did not take goes to another that is there. */
function makeRunner(members: readonly Member[], settings: Required<BalanceOptions>) {
  const choose = makeChoice(members, settings)
  const isUp = ({ restsUntil }: Member): boolean => restsUntil <= settings.clock.now()

  return async function run<T>(
    session: string,
    work: (policy: Policy) => Promise<T>,
  ): Promise<[T, Member]> {
    const member = choose(session)
    member.running++
    try {
      const result = await work(member.policy)
      member.failures = 0
      member.restsUntil = 0
      if (member.isMissed) settings.onMoved(member.policy.name, undefined)
      member.isMissed = false
      return [result, member]
    } catch (cause) {
      if (isPassing(cause)) rest(member, settings)
      const why = awayReason(cause)
      if (why === undefined || !members.some(isUp)) throw cause
      if (!member.isMissed) settings.onMoved(member.policy.name, why)
      member.isMissed = true
    } finally {
      member.running--
    }
    // Another is there.
    return await run(session, work)
  }
}

function from(sample: Sample, { name }: Policy): Sample {
  return { ...sample, usage: { ...sample.usage, server: name } }
}

function rest(member: Member, settings: Required<BalanceOptions>): void {
  const { restSeconds, longestRestSeconds, clock } = settings
  const seconds = Math.min(longestRestSeconds, restSeconds * 2 ** member.failures)
  member.failures++
  member.restsUntil = clock.now() + seconds * 1000
}

/** Picks the server of a request; sessions that were not seen for longest are forgotten first. */
function makeChoice(
  members: readonly Member[],
  { slack, clock }: Required<BalanceOptions>,
): (session: string) => Member {
  const homes = new Map<string, Member>()

  function settle(session: string, member: Member): Member {
    homes.delete(session)
    homes.set(session, member)
    for (const [oldest] of homes) {
      if (homes.size <= remembered) break
      homes.delete(oldest)
    }
    return member
  }

  return session => {
    const now = clock.now()
    const isUp = (member: Member): boolean => member.restsUntil <= now
    const awake = members.filter(isUp)
    // If all are down, try the one that rested longest.
    const least = awake.length > 0 ? leastBusy(awake) : firstAwake(members)
    const home = session === '' ? undefined : homes.get(session)
    const stays = home && isUp(home) && home.running <= least.running + slack
    const chosen = stays ? home : least
    // One request at a time finds out whether a server that failed is back.
    if (chosen.failures > 0) chosen.restsUntil = Math.max(chosen.restsUntil, now + 1000)
    return session === '' ? chosen : settle(session, chosen)
  }
}

function leastBusy(members: readonly Member[]): Member {
  return members.reduce((best, member) => (member.running < best.running ? member : best))
}

function firstAwake(members: readonly Member[]): Member {
  return members.reduce((best, member) => (member.restsUntil < best.restsUntil ? member : best))
}

/** What all of them can do. */
function commonCapabilities(policies: readonly Policy[]): PolicyCapabilities {
  const [first, ...others] = policies.map(({ capabilities }) => capabilities)
  if (!first) throw new RangeError('Nothing to balance: there is no policy.')
  const other = policies.find(({ capabilities }) => capabilities.basis !== first.basis)
  if (other) {
    throw new Error(
      `${policies[0]!.name} gives ${first.basis} log-probabilities but ${other.name} gives ` +
        `${other.capabilities.basis} ones: they cannot be one policy.`,
    )
  }
  return others.reduce(
    (common, each) => ({
      ids: common.ids && each.ids,
      logprobs: common.logprobs && each.logprobs,
      basis: common.basis,
      topLogprobs: Math.min(common.topLogprobs, each.topLogprobs),
      entropies: common.entropies && each.entropies,
      ...(common.experts && each.experts && { experts: true }),
      ...(common.images && each.images && { images: true }),
      score: common.score && each.score,
      several: common.several && each.several,
      abort: common.abort && each.abort,
      seed: common.seed && each.seed,
      version: common.version && each.version,
      stream: common.stream && each.stream,
    }),
    first,
  )
}

/** Their common description; a server that does not answer is skipped, one that differs is an error. */
async function describeAll(policies: readonly Policy[], call: Call): Promise<PolicyDescription> {
  const settled = await Promise.allSettled(policies.map(async policy => policy.describe?.(call)))
  const answers = settled.flatMap((result, index) =>
    result.status === 'fulfilled' && result.value
      ? [{ name: policies[index]!.name, ...result.value }]
      : [],
  )
  const [first] = answers
  if (!first) {
    const failed = settled.find(result => result.status === 'rejected')
    if (failed) throw failed.reason
    return {}
  }
  const other = answers.find(({ model }) => model !== first.model)
  if (other) {
    throw new Error(
      `${first.name} serves "${first.model}" but ${other.name} serves "${other.model}": ` +
        'they cannot be one policy.',
    )
  }
  const contexts = answers.flatMap(({ context }) => (context === undefined ? [] : [context]))
  return {
    ...(first.model === undefined ? {} : { model: first.model }),
    ...(contexts.length === 0 ? {} : { context: Math.min(...contexts) }),
  }
}
