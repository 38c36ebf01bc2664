import type { Environment, Task } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { TaskId } from '../../base/core/ids.ts'
import type { CaptureEnding } from '../../engine/capture/contract.ts'
import { elsewhere } from '../../engine/environments/elsewhere.ts'
import { refuseBatch } from '../../engine/weigh/estimate.ts'
import { openObserved } from '../../run/run/observed.ts'
import { openRollParts } from '../../run/run/open-parts.ts'
import { openRun } from '../../run/run/open-run-folder.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import type { OptionsOf, RunOptions } from '../../run/run/roll-options.ts'
import { checkOptions } from '../../run/settings/check-options.ts'
import { DiskWatch } from '../../run/store/disk-watch.ts'
import { isRun, readManifest } from '../../run/store/run-folder.ts'
import type { TaskSource } from '../../run/tasks/tasks.ts'
import { tasksById } from '../../run/tasks/tasks-by-id.ts'
import { writeReport } from '../../run/watch/run-report.ts'
import { checkName, findAttempt } from './attempt-names.ts'
import { type AttemptRecord, openNames } from './attempt-record.ts'
import { checkEnding } from './endings.ts'
import type { Gateway } from './gateway.ts'
import { openGateway } from './open-gateway.ts'
import type { Secrets } from './secrets.ts'
import { serveGateway } from './server.ts'

/** Who the agents are, and where they find the gateway. */
export interface AgentsOptions {
  /** Whose tasks and rewards they are. @default none: any task, rewards as agents post them */
  readonly environment?: Environment | string
  /** Tasks that attempts may name without sending their data. @default none */
  readonly tasks?: TaskSource
  /** 0 takes any free one. @default 8700 */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** Who may use the model, open and close attempts, and read. @default everybody on this machine */
  readonly secrets?: Secrets
  /** Attempts that may be open at one time. @default 4096 */
  readonly attempts?: number
  /** Seconds without a request after which an attempt is closed. @default 600 */
  readonly idleSeconds?: number
  /** Seconds that requests under way are given when it is stopped. @default 10 */
  readonly graceSeconds?: number
}

/** How agents are recorded. Only the policy has to be named. */
export interface GatewayOptions
  extends Omit<RunOptions, 'resumes' | 'retry' | 'elsewhere'>,
    Omit<OptionsOf<'gateway'>, 'environment' | 'tasks'>,
    AgentsOptions {
  /** Called with every group when its last attempt has ended. */
  readonly onGroup?: (group: Group) => void
}

/** An attempt that was opened: what its agent is given. */
export interface OpenedAttempt {
  readonly id: string
  /** What the agent sends as its API key. */
  readonly token: string
  /** The base URL of the gateway, for dialects that add the version themselves. */
  readonly url: string
}

/** A gateway that listens. Disposing of it finishes or cuts what runs, and writes every group. */
export interface RunningGateway extends AsyncDisposable {
  readonly url: string
  readonly policy: string
  /** A task that an attempt can be opened for by its id, if the tasks are known. */
  readonly someTask?: string
  openAttempt(task: string, data?: unknown): OpenedAttempt
  /** Closes an attempt; its reward is posted here, or the reward functions are asked. */
  closeAttempt(id: string, ending?: CaptureEnding): Promise<void>
}

/**
 * Serves a policy to agents in any language and keeps what they do as a run.
 *
 * @example
 * await using door = await gateway({ policy: 'embedded', group: 4, out: 'runs/agents' })
 */
export async function gateway(options: GatewayOptions): Promise<RunningGateway> {
  checkOptions<'gateway', GatewayOptions>('gateway', options)
  const { environment = elsewhere, tasks, out, graceSeconds = 10 } = options
  await using opening = openLater()
  const opened = opening.add(
    await openRollParts(environment, tasks, { ...options, serverThread: false, outwaits: false }),
  )
  refuseBatch(opened.parts.estimate, 'the gateway')
  const { seed = 0, split } = opened.parts
  const reading = { seed, ...(split !== undefined && { split }) }
  const byId = await tasksById(opened.parts.environment, tasks, reading)
  const [someTask] = byId.keys()
  const isKnown = (task: Task): boolean => byId.get(task.id) === task
  const keeping = { given: opened.parts, options, isKnown }
  const kept = out === undefined ? undefined : opening.add(await keepIn(out, keeping))
  const inner = openGateway({
    parts: kept?.parts ?? opened.parts,
    tasks: byId,
    ...(kept && { record: kept.record, disk: kept.disk }),
    ...(options.secrets && { secrets: options.secrets }),
    ...(options.attempts !== undefined && { most: options.attempts }),
    ...(options.idleSeconds !== undefined && { idleSeconds: options.idleSeconds }),
    ...(options.onGroup && { onGroup: options.onGroup }),
  })
  opening.add(inner)
  const known = kept?.parts.known?.values() ?? []
  await inner.attempts.adopt(
    known,
    tree => kept?.record.taskOf(tree) ?? taskAgain(inner, tree.task),
  )
  const { port, host } = options
  const server = await serveGateway(inner, {
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
  })
  const close = opening.keep()
  return {
    url: server.url,
    policy: opened.parts.policy.name,
    ...(someTask !== undefined && { someTask }),
    openAttempt(task, data) {
      const { id, token } = inner.attempts.open({
        task: inner.readTask(checkName(task) as TaskId, data),
      })
      return { id, token, url: server.url }
    },
    async closeAttempt(id, ending) {
      if (ending !== undefined) checkEnding(ending)
      await inner.attempts.close(findAttempt(inner, id), ending)
    },
    async [Symbol.asyncDispose]() {
      await inner.attempts.drain(graceSeconds)
      await server[Symbol.asyncDispose]()
      kept?.disk.end()
      try {
        await inner[Symbol.asyncDispose]()
        await kept?.finish()
      } finally {
        await close()
      }
    },
  }
}

/** A task of earlier attempts for which no data was sent. */
export function taskAgain({ readTask }: Gateway, id: TaskId): Task {
  try {
    return readTask(id)
  } catch {
    return { id, data: { id } }
  }
}

/** Opens the run folder, or resumes one that a gateway left, and its observers. */
async function keepIn(
  out: string,
  {
    given,
    options,
    isKnown,
  }: {
    readonly given: RollParts
    readonly options: GatewayOptions
    readonly isKnown: (task: Task) => boolean
  },
) {
  const { config = { policy: given.policy.name } } = options
  const resumes = isRun(out) && (await readManifest(out)).kind === 'gateway'
  const disk = new DiskWatch(options.tell && { tell: options.tell })
  const record = { out, kind: 'gateway', config, unfinished: 'restart', resumes, disk } as const
  const run = await openRun(given, record)
  const observed = await openObserved(given, { ...options, out })
  const names = await openNames(out, { ...run.parts, isKnown })
  return {
    disk,
    record: {
      ...names,
      keep: (attempt, tree) => disk.keep(() => names.keep(attempt, tree)),
    } satisfies AttemptRecord,
    parts: { ...given, ...run.parts, listen: observed.parts.listen! } satisfies RollParts,
    async finish() {
      await run.finish()
      await writeReport(out, await observed.notes())
    },
    async [Symbol.asyncDispose]() {
      await observed[Symbol.asyncDispose]()
      await run[Symbol.asyncDispose]()
    },
  }
}

/** Collects what was opened; closes it in reverse order if opening fails, or else on disposal. */
function openLater() {
  const opened: AsyncDisposable[] = []
  let isKept = false
  const close = async (): Promise<void> => {
    const ends = opened.splice(0).toReversed()
    let failure: unknown
    for (const each of ends) {
      try {
        await each[Symbol.asyncDispose]()
      } catch (error) {
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
  }
  return {
    add<T extends AsyncDisposable>(each: T): T {
      opened.push(each)
      return each
    },
    keep() {
      isKept = true
      return close
    },
    async [Symbol.asyncDispose]() {
      if (!isKept) await close()
    },
  }
}
