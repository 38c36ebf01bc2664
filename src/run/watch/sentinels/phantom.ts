import { type Group, isHeldOut, type Weighted } from '../../../base/core/group.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/** Groups that teach only shaping before the warning, and their share of all that teach. */
const [enough, tooMany] = [6, 0.25]

/** Further groups are not looked at. */
const looks = 512

/**
 * Warns if many groups have advantages though their outcome does not differ: the reward's part of the largest weight is
 * equal, and parts beside it alone decide what is learned.
 */
export function phantomAdvantages(): Sentinel {
  let seen = 0
  let taught = 0
  const phantoms: Phantom[] = []
  let isOver = false
  return {
    name: 'phantom-advantages',
    seeGroup(group): Alarm | undefined {
      if (isOver || isHeldOut(group)) return undefined
      isOver = ++seen > looks
      const trained = group.members.filter(({ dropped, advantage }) => !dropped && advantage)
      if (trained.length === 0) return undefined
      taught++
      const phantom = phantomOf(group, trained)
      if (phantom) phantoms.push(phantom)
      if (phantoms.length < enough || phantoms.length < tooMany * taught) return undefined
      isOver = true
      return alarmOf(phantoms, taught)
    },
  }
}

interface Phantom {
  readonly outcome: string
  readonly shaping: readonly string[]
  readonly least: number
  readonly most: number
}

function phantomOf({ members }: Group, trained: readonly Weighted[]): Phantom | undefined {
  const { parts } = members[0]!.reward
  const weights = parts.map(({ weight }) => Math.abs(weight))
  const heaviest = Math.max(...weights)
  if (parts.length < 2 || weights.filter(weight => weight === heaviest).length > 1) return undefined
  const outcome = parts[weights.indexOf(heaviest)]!.name
  const differs = (name: string): boolean =>
    new Set(members.map(({ reward }) => reward.parts.find(part => part.name === name)?.score))
      .size > 1
  if (differs(outcome)) return undefined
  const advantages = trained.map(({ advantage }) => advantage!)
  const shaping = parts.map(({ name }) => name).filter(differs)
  if (shaping.length === 0) return undefined
  return { outcome, shaping, least: Math.min(...advantages), most: Math.max(...advantages) }
}

function alarmOf(phantoms: readonly Phantom[], taught: number): Alarm {
  const [{ outcome }] = phantoms as readonly [Phantom]
  const shaping = [...new Set(phantoms.flatMap(phantom => phantom.shaping))].join(', ')
  const least = Math.min(...phantoms.map(phantom => phantom.least))
  const most = Math.max(...phantoms.map(phantom => phantom.most))
  return {
    message:
      `in ${phantoms.length} of ${taught} groups that are learned from, "${outcome}" is the same for all attempts, and ` +
      `${shaping} alone gives them advantages from ${least.toFixed(2)} to ${most.toFixed(2)}`,
    likely: `a small part decides as much as the outcome does, because advantages are scaled within a group; learn only where the outcome differs: --filter equal-rewards:part=${outcome}`,
  }
}
