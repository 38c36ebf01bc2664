import type { Renderer } from '@espalier/text'
import type { Group } from '../../../base/core/group.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type { RolledAhead } from '../events.ts'

/** What a sentinel saw, and the probable cause. */
export interface Alarm {
  readonly message: string
  readonly likely: string
}

/** Watches what a run makes for one way to fail in silence. */
export interface Sentinel {
  readonly name: string
  /** Looks at a tree that ended; gives an alarm when it has seen enough. */
  seeTree?(tree: Tree): Alarm | undefined
  /** Looks at a group that is complete. */
  seeGroup?(group: Group): Alarm | undefined
  /** Looks at the numbers of a training step. */
  seeStep?(metrics: Readonly<Record<string, number>>, ahead?: RolledAhead): Alarm | undefined
  /** Looks at the curves of a training step, or of held-out tasks. */
  seeCurves?(values: Readonly<Record<string, number>>): Alarm | undefined
}

/** What sentinels know about the run. */
export interface SentinelContext {
  readonly renderer: Pick<Renderer, 'decode'>
  /** The policy's name, which begins with its kind of server. */
  readonly policy?: string
  /** Whether the policy is the embedded one: its numbers are exact and its formats our own. */
  readonly isOurs?: boolean
}
