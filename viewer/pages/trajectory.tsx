import type { TrajectoryAnswer } from '../../src/doors/view/trajectory-shapes.ts'
import { formatFixed, formatOutcome } from '../data/format.ts'
import { hrefTo } from '../data/route.ts'
import { useData } from '../data/use-data.ts'
import { Conversation } from '../parts/conversation.tsx'
import { Crumbs } from '../parts/crumbs.tsx'
import { Json } from '../parts/json.tsx'
import { Show } from '../parts/states.tsx'
import { TokenView } from '../parts/token-view.tsx'
import { TrajectoryFacts } from '../parts/trajectory-facts.tsx'

type Params = Readonly<Record<string, string>>

const tabs = [
  ['conversation', 'Conversation'],
  ['tokens', 'Tokens'],
  ['raw', 'Raw'],
] as const

/** One attempt: its conversation, its tokens on demand, and its reward. */
export function TrajectoryPage({ name, params }: { name: string; params: Params }) {
  const id = params.id ?? ''
  const loaded = useData(`trajectory ${name} ${id}`, source => source.trajectory(name, id))
  return (
    <div class="page">
      <Show of={loaded} what="the trajectory">
        {trajectory => <Trajectory name={name} params={params} trajectory={trajectory} />}
      </Show>
    </div>
  )
}

interface TrajectoryProps {
  readonly name: string
  readonly params: Params
  readonly trajectory: TrajectoryAnswer
}

function Trajectory({ name, params, trajectory }: TrajectoryProps) {
  const view = tabs.find(([key]) => key === params.view)?.[0] ?? 'conversation'
  return (
    <>
      <Crumbs
        run={name}
        group={trajectory.group}
        here={trajectory.id.split('/').slice(-2).join('/')}
      />
      <header class="title">
        <h1>{trajectory.task.id}</h1>
        {trajectory.seat !== undefined && <p class="meta">seat {trajectory.seat}</p>}
        <Siblings name={name} trajectory={trajectory} view={view} />
      </header>
      <nav class="tabs" aria-label="Ways to read it">
        {tabs.map(([key, text]) => (
          <a
            key={key}
            href={hrefTo(['run', name, 'trajectory'], {
              id: trajectory.id,
              view: key === 'conversation' ? '' : key,
            })}
            aria-current={view === key ? 'page' : undefined}
          >
            {text}
          </a>
        ))}
        {trajectory.endings > 1 || trajectory.paths.length > 1 ? (
          <a href={hrefTo(['run', name, 'tree'], { id: trajectory.tree })}>Tree</a>
        ) : null}
      </nav>
      <div class="beside-facts">
        <div>
          {view === 'conversation' && <Conversation name={name} trajectory={trajectory} />}
          {view === 'tokens' && <TokenView name={name} trajectory={trajectory} params={params} />}
          {view === 'raw' && <Raw name={name} id={trajectory.id} />}
        </div>
        <TrajectoryFacts trajectory={trajectory} />
      </div>
    </>
  )
}

function Siblings({
  name,
  trajectory,
  view,
}: {
  name: string
  trajectory: TrajectoryAnswer
  view: string
}) {
  return (
    <nav class="siblings" aria-label="Members of the group">
      {trajectory.members.map(({ id, reward, outcome }) => {
        const told = reward ? `reward ${formatFixed(reward.total)}` : formatOutcome(outcome)
        return (
          <a
            key={id}
            href={hrefTo(['run', name, 'trajectory'], {
              id,
              view: view === 'conversation' ? '' : view,
            })}
            aria-current={id === trajectory.id ? 'page' : undefined}
            title={`${id}, ${told}`}
          >
            <span>{id.split('/').slice(-2).join('/')}</span>
            <b>{reward ? formatFixed(reward.total) : '×'}</b>
          </a>
        )
      })}
    </nav>
  )
}

function Raw({ name, id }: { name: string; id: string }) {
  const raw = useData(`raw ${name} ${id}`, source => source.raw(name, id))
  return (
    <Show of={raw} what="JSON">
      {value => <Json value={value} />}
    </Show>
  )
}
