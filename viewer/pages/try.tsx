import { useState } from 'preact/hooks'
import type { RunAnswer, TryAnswer, TryRequest } from '../../src/doors/view/answers.ts'
import type { TrajectoryAnswer } from '../../src/doors/view/trajectory-shapes.ts'
import {
  formatCount,
  formatFixed,
  formatNumber,
  formatOutcome,
  formatPolicy,
  formatSigned,
} from '../data/format.ts'
import { hrefTo } from '../data/route.ts'
import { useData, useSource } from '../data/use-data.ts'
import { Crumbs } from '../parts/crumbs.tsx'
import { MessageView } from '../parts/message.tsx'
import { Show } from '../parts/states.tsx'

type Params = Readonly<Record<string, string>>

/** Continues from a turn or a token in new branches, and shows them beside the old one. */
export function TryPage({ name, params }: { name: string; params: Params }) {
  const id = params.id ?? ''
  const loaded = useData(`try ${name} ${id}`, async source => ({
    run: await source.run(name),
    trajectory: await source.trajectory(name, id),
  }))
  return (
    <div class="page">
      <Show of={loaded} what="the trajectory">
        {({ run, trajectory }) => (
          <>
            <Crumbs
              run={name}
              group={trajectory.group}
              here={`try from ${placeName(params.at ?? '0')}`}
            />
            <h1>Another way from {placeName(params.at ?? '0')}</h1>
            <Workbench run={run} trajectory={trajectory} at={params.at ?? '0'} />
          </>
        )}
      </Show>
    </div>
  )
}

function placeName(at: string): string {
  return at.startsWith('t') ? `token ${at.slice(1)}` : `turn ${at}`
}

interface WorkbenchProps {
  readonly run: RunAnswer
  readonly trajectory: TrajectoryAnswer
  readonly at: string
}

function Workbench({ run, trajectory, at }: WorkbenchProps) {
  const source = useSource()
  const [state, setState] = useState<TryAnswer | undefined>(undefined)
  const begin = async (request: TryRequest): Promise<void> => {
    setState({ kind: 'working', seconds: 0, lines: [] })
    try {
      const begun = await source.beginTry(run.name, request)
      for (;;) {
        const answer = await source.tryAnswer(begun)
        setState(answer)
        if (answer.kind !== 'working') return
        await new Promise(resolve => setTimeout(resolve, 500))
      }
    } catch (error) {
      setState({ kind: 'failed', problem: (error as Error).message })
    }
  }
  return (
    <>
      <Asking
        run={run}
        trajectory={trajectory}
        at={at}
        isWorking={state?.kind === 'working'}
        onBegin={begin}
      />
      {state?.kind === 'working' && (
        <p role="status" class="lead">
          The world is replayed to this place and continued… {state.seconds.toFixed(0)} s{' '}
          {state.lines.at(-1)}
        </p>
      )}
      {state?.kind === 'failed' && (
        <p role="alert" class="bad lead">
          {state.problem}
        </p>
      )}
      {state?.kind === 'done' && <Branches answer={state} before={trajectory} at={at} />}
      {state === undefined && <Before trajectory={trajectory} at={at} />}
    </>
  )
}

interface AskingProps extends WorkbenchProps {
  readonly isWorking: boolean
  readonly onBegin: (request: TryRequest) => Promise<void>
}

function Asking({ run, trajectory, at, isWorking, onBegin }: AskingProps) {
  const [edit, setEdit] = useState('')
  const [samples, setSamples] = useState(4)
  const [policy, setPolicy] = useState(run.policies[0] ?? '')
  const command = `espalier fork ${run.folder} ${trajectory.id} --at ${at} --samples ${samples}`
  if (!run.canTry) {
    return (
      <p class="lead">
        This page cannot fork:{' '}
        {run.config.environment === undefined
          ? 'the run does not say which environment it was rolled in'
          : 'it is a file'}
        . Where the run lies: <code>{command}</code>
      </p>
    )
  }
  return (
    <form
      class="asking"
      onSubmit={event => {
        event.preventDefault()
        void onBegin({
          id: trajectory.id,
          at,
          samples,
          ...(edit !== '' && { edit }),
          ...(policy !== run.policies[0] && { policy }),
        })
      }}
    >
      <label class="wide">
        <span>
          Put this text there first (it counts as observed, not sampled); leave it empty to only
          sample anew
        </span>
        <textarea
          rows={4}
          value={edit}
          onInput={event => setEdit(event.currentTarget.value)}
          spellcheck={false}
        />
      </label>
      <label>
        <span>Continuations</span>
        <input
          type="number"
          min={1}
          max={64}
          value={samples}
          onInput={event =>
            setSamples(Math.max(1, Math.min(64, Number(event.currentTarget.value) || 1)))
          }
        />
      </label>
      <label>
        <span>Policy</span>
        <select value={policy} onChange={event => setPolicy(event.currentTarget.value)}>
          {run.policies.map(each => (
            <option key={each} value={each}>
              {formatPolicy(each)}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" class="strong" disabled={isWorking}>
        Go on from here
      </button>
      <p class="muted wide">
        The same in a terminal: <code>{command}</code>
      </p>
    </form>
  )
}

/** The messages before the place that is continued. */
function Before({ trajectory, at }: { trajectory: TrajectoryAnswer; at: string }) {
  const turn = turnOf(trajectory, at)
  const until = trajectory.turns[turn]?.messages ?? trajectory.messages.length
  return (
    <section class="conversation" aria-label="What came before">
      {trajectory.messages.slice(0, until).map((message, index) => (
        <MessageView key={index} message={message} calls={trajectory.calls} />
      ))}
      <p class="ending">it went on from here</p>
      {trajectory.messages.slice(until).map((message, index) => (
        <MessageView key={`after ${index}`} message={message} calls={trajectory.calls} />
      ))}
    </section>
  )
}

function turnOf({ turns }: TrajectoryAnswer, at: string): number {
  if (!at.startsWith('t')) return Number(at)
  const token = Number(at.slice(1))
  return Math.max(
    0,
    turns.findIndex(({ start, end }) => start <= token && token < end),
  )
}

type Done = Extract<TryAnswer, { kind: 'done' }>

/** The new branches beside the old one. */
function Branches({ answer, before, at }: { answer: Done; before: TrajectoryAnswer; at: string }) {
  const { run, group, value, given } = answer
  const loaded = useData(`tried ${run} ${group}`, async source => {
    const { members } = await source.group(run, group)
    return await Promise.all(members.slice(0, 16).map(({ id }) => source.trajectory(run, id)))
  })
  const from = before.turns[turnOf(before, at)]?.messages ?? 0
  return (
    <section aria-label="New branches">
      <p class="lead" role="status">
        {value
          ? `From here the policy earns ${formatNumber(value.mean)} on average (95 % between ${formatNumber(value.low)} and ${formatNumber(value.high)}, ${value.samples} continuations); the old one got ${formatNumber(answer.before)}. `
          : 'No continuation could be scored. '}
        {formatCount(given)} tokens were given. <a href={hrefTo(['run', run])}>Kept as run {run}</a>
        .
      </p>
      <Show of={loaded} what="the branches">
        {branches => (
          <div class="branches">
            <Branch title="as it went" trajectory={before} from={from} />
            {branches.map((branch, index) => (
              <Branch
                key={branch.id}
                title={`branch ${index + 1}`}
                trajectory={branch}
                from={from}
                run={run}
              />
            ))}
          </div>
        )}
      </Show>
    </section>
  )
}

function Branch({
  title,
  trajectory,
  from,
  run,
}: {
  title: string
  trajectory: TrajectoryAnswer
  from: number
  run?: string
}) {
  const { reward, advantage, outcome, id } = trajectory
  return (
    <article class={run === undefined ? 'old' : ''}>
      <header>
        <h2>
          {run === undefined ? (
            title
          ) : (
            <a href={hrefTo(['run', run, 'trajectory'], { id })}>{title}</a>
          )}
        </h2>
        <span>
          reward <b>{formatFixed(reward?.total ?? null)}</b>
        </span>
        <span>
          advantage <b>{formatSigned(advantage)}</b>
        </span>
        <small class="muted">{formatOutcome(outcome)}</small>
      </header>
      {trajectory.messages.slice(from).map((message, index) => (
        <MessageView key={index} message={message} calls={trajectory.calls} />
      ))}
    </article>
  )
}
