import type { Key } from '../advantage.ts'
import { checkNumber, checkWord, readOptions } from '../options.ts'
import { weightedDeviation, weightedMean } from '../statistics.ts'

/** One turn of a trajectory; the turns of a trajectory are listed in their order. */
export interface RewardedTurn {
  readonly group: Key
  readonly trajectory: Key
  /** Earned at this turn; `undefined` on any turn means that the trajectory was never scored. */
  readonly reward: number | undefined
  /** The state before the action, undecorated. GiGPO compares turns that share one. */
  readonly anchor?: Key | undefined
  /** The trajectory's leaf weight in a tree, the same on all its turns. @default 1 */
  readonly weight?: number
}

/** A turn with what follows from it. */
export interface Turn extends RewardedTurn {
  readonly place: number
  /** Its number within its trajectory, from 0. */
  readonly step: number
  /** Σ_k γ^k r over itself and the turns after it. */
  readonly discounted: number
}

/** G_t = r_t + γ G_{t+1}, for the rewards of one trajectory's turns in order. */
export function discountedReturns(rewards: readonly number[], gamma: number): number[] {
  checkNumber('gamma', gamma, { low: 0, high: 1 })
  const returns = new Array<number>(rewards.length)
  let following = 0
  for (let turn = rewards.length - 1; turn >= 0; turn--) {
    following = rewards[turn]! + gamma * following
    returns[turn] = following
  }
  return returns
}

/** Ways to share one reward out over turns. */
export const sharingNames = ['last', 'every', 'uniform', 'geometric'] as const

/**
 * One reward as rewards of n turns: all of it at the `last`, all of it at `every` turn, an n-th at each
 * (`uniform`), or in proportion to γ^(n−1−t) (`geometric`), which sums to the reward again.
 */
export function shareReward(
  reward: number,
  turns: number,
  { sharing, gamma = 0.9 }: { sharing: (typeof sharingNames)[number]; gamma?: number },
): number[] {
  checkWord('A sharing', sharing, sharingNames)
  checkNumber('gamma', gamma, { low: 0, high: 1 })
  const parts = Array.from({ length: turns }, (_, turn) => {
    if (sharing === 'last') return turn === turns - 1 ? 1 : 0
    return sharing === 'geometric' ? gamma ** (turns - 1 - turn) : 1
  })
  const whole = sharing === 'every' ? 1 : parts.reduce((sum, part) => sum + part, 0)
  return parts.map(part => (reward * part) / whole)
}

/** How turn-level advantages are made. */
export interface TurnLevelSettings {
  readonly gamma: number
  /** Turns are compared with those of the same number in the group, or with all its turns. */
  readonly across: 'turn' | 'group'
  readonly scale: 'group' | 'none'
  readonly epsilon: number
}

/**
 * Turn-level advantages: every turn's discounted return, less the mean of the returns it is compared
 * with, divided by their spread. A turn with nothing to compare has 0. One per turn given.
 */
export function turnLevelAdvantages(
  turns: readonly RewardedTurn[],
  options: Partial<TurnLevelSettings> = {},
): (number | undefined)[] {
  const defaults: TurnLevelSettings = { gamma: 1, across: 'turn', scale: 'group', epsilon: 1e-6 }
  const settings = readOptions('The turn-level advantage', defaults, options)
  checkWord('across', settings.across, ['turn', 'group'])
  const advantages: (number | undefined)[] = new Array(turns.length).fill(undefined)
  for (const group of gatherTurns(turns, settings.gamma)) {
    const keyOf = (turn: Turn) => (settings.across === 'turn' ? turn.step : 0)
    for (const compared of partition(group.flat(), keyOf)) {
      const results = compare(
        compared,
        compared.map(turn => turn.discounted),
        settings,
      )
      compared.forEach((turn, index) => {
        advantages[turn.place] = results[index]!
      })
    }
  }
  return advantages
}

/** Per group, per scored trajectory: its turns with their returns. */
export function gatherTurns(turns: readonly RewardedTurn[], gamma: number): Turn[][][] {
  const placed = turns.map((turn, place) => ({ turn, place }))
  return partition(placed, ({ turn }) => turn.group).map(group =>
    partition(group, ({ turn }) => turn.trajectory).flatMap(own => {
      checkTurns(own.map(({ turn }) => turn))
      if (own.some(({ turn }) => turn.reward === undefined)) return []
      const returns = discountedReturns(
        own.map(({ turn }) => turn.reward as number),
        gamma,
      )
      return [
        own.map(({ turn, place }, step) => ({ ...turn, place, step, discounted: returns[step]! })),
      ]
    }),
  )
}

/** Centres numbers on their weighted mean and scales them by their spread; one alone gives 0. */
export function compare(
  turns: readonly { readonly weight?: number }[],
  values: readonly number[],
  { scale, epsilon }: { scale: 'group' | 'none'; epsilon: number },
): number[] {
  checkWord('scale', scale, ['group', 'none'])
  checkNumber('epsilon', epsilon, { low: 0 })
  const weights = turns.map(turn => turn.weight ?? 1)
  const centre = weightedMean(values, weights)
  const spread = scale === 'none' ? 1 : weightedDeviation(values, { weights }) + epsilon || 1
  return values.map(value => (value - centre) / spread)
}

/** Items with equal keys together, in the order of first sight. */
export function partition<T, K>(items: readonly T[], keyOf: (item: T) => K): T[][] {
  const parts = new Map<K, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const part = parts.get(key)
    if (part === undefined) parts.set(key, [item])
    else part.push(item)
  }
  return [...parts.values()]
}

function checkTurns(turns: readonly RewardedTurn[]): void {
  const { group, trajectory, weight = 1 } = turns[0]!
  const where = `Trajectory ${trajectory} of group ${group}`
  for (const turn of turns) {
    if (turn.reward !== undefined && !Number.isFinite(turn.reward)) {
      throw new RangeError(`${where} has a turn with reward ${turn.reward}.`)
    }
    if ((turn.weight ?? 1) !== weight || !(weight > 0)) {
      throw new RangeError(`${where} has turns of weight ${weight} and ${turn.weight ?? 1}.`)
    }
  }
}
