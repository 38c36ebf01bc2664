import { describeCause } from '../../../base/core/failure.ts'
import { describeOutcome } from '../../../base/core/outcome.ts'
import type { Listen, RunEvent } from '../events.ts'
import type { Channel } from './channels.ts'
import { type Draft, fingerprintOf, type Notice, noticeOfError } from './notice.ts'

/** Notifies people of problems, once per problem, without ever delaying the run. */
export interface Notifier extends AsyncDisposable {
  readonly listen: Listen
  notify(draft: Draft): void
  /** Notices that were sent, those held back because they came too often, and those that failed. */
  readonly counts: { readonly sent: number; readonly held: number; readonly failed: number }
}

/** How often notices are sent. */
export interface NotifierOptions {
  readonly run: string
  readonly channels: readonly Channel[]
  readonly redact: (text: string) => string
  /** Seconds before a repeated problem is sent again, with its count. @default 600 */
  readonly every?: number
  /** Notices per hour over all problems. @default 30 */
  readonly perHour?: number
  /** Called once per channel that cannot be reached. */
  readonly tell?: (line: string) => void
  /** Seconds that closing waits for channels. @default 5 */
  readonly patience?: number
  /** Milliseconds since 1970. @default the machine's */
  readonly clock?: () => number
}

interface Problem {
  readonly draft: Draft
  toldAt: number
  /** Times it happened since. */
  count: number
}

const longest = 4000
/** Most problems that are tracked; further ones are sent each time. */
const mostProblems = 500

/** Opens a notifier; disposing of it sends the last counts and waits a few seconds at most. */
export function makeNotifier(options: NotifierOptions): Notifier {
  const { every = 600, perHour = 30, clock = Date.now, channels, redact } = options
  const problems = new Map<string, Problem>()
  const counts = { sent: 0, held: 0, failed: 0 }
  const sending = new Set<Promise<void>>()
  const unreachable = new Set<string>()
  let hour: number[] = []

  function send(draft: Draft, count: number): void {
    const now = clock()
    hour = hour.filter(time => time > now - 3_600_000)
    if (hour.length >= perHour && draft.level !== 'end') {
      counts.held += count
      return
    }
    hour.push(now)
    const notice = toNotice(draft, { run: options.run, count, time: now, redact })
    for (const channel of channels.filter(each => each.on.includes(draft.level))) {
      const sent = channel
        .send(notice, AbortSignal.timeout(10_000))
        .then(
          () => void counts.sent++,
          cause => failed(channel, cause),
        )
        .finally(() => sending.delete(sent))
      sending.add(sent)
    }
  }
  function failed(channel: Channel, cause: unknown): void {
    counts.failed++
    if (unreachable.has(channel.name)) return
    unreachable.add(channel.name)
    options.tell?.(redact(`notify: ${channel.name} could not be told: ${describeCause(cause)}`))
  }
  function notify(draft: Draft): void {
    const known = problems.get(draft.fingerprint)
    if (known) {
      known.count++
      if (clock() - known.toldAt >= every * 1000) repeat(known)
      else counts.held++
      return
    }
    if (problems.size < mostProblems) {
      problems.set(draft.fingerprint, { draft, toldAt: clock(), count: 0 })
    }
    send(draft, 1)
  }
  function repeat(problem: Problem): void {
    send(problem.draft, problem.count)
    problem.toldAt = clock()
    problem.count = 0
  }
  const timer = setInterval(() => {
    for (const problem of problems.values()) {
      if (problem.count > 0 && clock() - problem.toldAt >= every * 1000) repeat(problem)
    }
  }, Math.min(every, 60) * 1000)
  timer.unref()

  return {
    counts,
    notify,
    listen: event => {
      const draft = draftOf(event)
      if (draft) notify(draft)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      for (const problem of problems.values()) if (problem.count > 0) repeat(problem)
      await Promise.race([Promise.allSettled(sending), wait((options.patience ?? 5) * 1000)])
    },
  }
}

function wait(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds).unref())
}

function toNotice(
  draft: Draft,
  {
    run,
    count,
    time,
    redact,
  }: { run: string; count: number; time: number; redact: (text: string) => string },
): Notice {
  const times = count > 1 ? ` (${count} times more)` : ''
  return {
    ...draft,
    title: redact(`espalier ${run}: ${draft.title}${times}`).slice(0, 200),
    text: shorten(redact(draft.text)),
    run,
    time: new Date(time).toISOString(),
    count,
  }
}

function shorten(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}\n… (${text.length} characters)`
}

/** The notice for an event, if it is worth one. */
function draftOf(event: RunEvent): Draft | undefined {
  switch (event.kind) {
    case 'warning': {
      const { sentinel, message, likely } = event
      const text = `${message}\nlikely: ${likely}`
      return { level: 'warning', title: sentinel, text, fingerprint: fingerprintOf(sentinel) }
    }
    case 'tree-end': {
      if (event.ends?.every(({ outcome }) => outcome.kind !== 'failed')) return undefined
      const failed = event.tree.trajectories.find(({ outcome }) => outcome.kind === 'failed')
      if (failed?.outcome.kind !== 'failed') return undefined
      const { boundary, message } = failed.outcome
      const text = `${failed.id} ${describeOutcome(failed.outcome)}`
      const fingerprint = fingerprintOf(boundary, message)
      return { level: 'failure', title: `an attempt failed in ${boundary}`, text, fingerprint }
    }
    case 'run-end':
      return event.status === 'failed'
        ? noticeOfError(event.error ?? event.reason, 'the run')
        : {
            level: 'end',
            title: event.status,
            text: event.reason ?? `the run is ${event.status}`,
            fingerprint: fingerprintOf('run-end', event.status),
          }
    default:
      return undefined
  }
}
