import type { Answering } from '../../../base/core/call.ts'
import type { GroupCall, GroupWork, Returned, ReturnedGroup, Work } from '../elsewhere.ts'

/** An attempt that is waited for. */
export interface AskedAttempt extends Answering<Returned> {
  readonly kind: 'attempt'
  readonly work: Work
  /** The name of this making. @default as often as it was tried */
  readonly making: string | undefined
  readonly signal: AbortSignal
  tries: number
  /** Attempts that are still to be made for it. */
  left: number
  /** Takes it back from the thread that makes it. */
  takeBack?: () => void
}

/** A group that is waited for. */
export interface AskedGroup
  extends Answering<ReturnedGroup>,
    Pick<GroupCall, 'onBegin' | 'onPiece'>,
    Pick<AskedAttempt, 'left' | 'takeBack'> {
  readonly kind: 'group'
  readonly work: GroupWork
  readonly making: string
}

/** What a crew is asked for. */
export type Asked = AskedAttempt | AskedGroup

/** The name under which something is made, if it may be made several times. */
export interface Named {
  readonly making?: string
}
