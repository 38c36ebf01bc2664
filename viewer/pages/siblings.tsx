import type {
  Candidate,
  PartingAnswer,
  PartingSide,
  TrajectoryAnswer,
} from '../../src/doors/view/trajectory-shapes.ts'
import {
  formatCount,
  formatNumber,
  formatOutcome,
  formatProbability,
  formatSigned,
} from '../data/format.ts'
import { hrefTo } from '../data/route.ts'
import { useData } from '../data/use-data.ts'
import { Crumbs } from '../parts/crumbs.tsx'
import { MessageView } from '../parts/message.tsx'
import { Show } from '../parts/states.tsx'
import { Visible } from '../parts/visible.tsx'

/** Two siblings side by side, from the token where they part. */
export function SiblingsPage({ name, a, b }: { name: string; a: string; b: string }) {
  const pair = useData(`pair ${name} ${a} ${b}`, async source => ({
    left: await source.trajectory(name, a),
    right: await source.trajectory(name, b),
    parting: await source.parting(name, a, b),
  }))
  return (
    <div class="page">
      <Show of={pair} what="both trajectories">
        {({ left, right, parting }) => (
          <>
            <Crumbs run={name} group={left.group} here="side by side" />
            <h1>Where they part</h1>
            <Parting parting={parting} />
            <Aligned name={name} left={left} right={right} />
          </>
        )}
      </Show>
    </div>
  )
}

function Parting({ parting }: { parting: PartingAnswer }) {
  if (parting.areEqual) {
    return (
      <p class="lead">They are equal, token by token: {formatCount(parting.shared)} of them.</p>
    )
  }
  const [left, right] = parting.sides
  return (
    <section class="parting" aria-label="Where they part">
      <p class="lead">
        The first {formatCount(parting.shared)} tokens are the same. Then one went on with{' '}
        <Token token={left.token} /> and the other with <Token token={right.token} />.
      </p>
      <p class="before">
        <Visible text={parting.before} />
      </p>
      <div class="two">
        <Branch side={left} />
        <Branch side={right} />
      </div>
    </section>
  )
}

function Token({ token }: { token: PartingSide['token'] }) {
  if (!token) return <em>its end</em>
  return (
    <span class="token" title={`token ${token.id}`}>
      <Visible text={token.text} />
    </span>
  )
}

function Branch({ side }: { side: PartingSide }) {
  const { token, entropy, top, origin } = side
  return (
    <article>
      <p>
        <Token token={token} />
        <span class="muted after">
          <Visible text={side.after} />
        </span>
      </p>
      <p class="probability">
        {token === null ? (
          'ended here'
        ) : token.logprob === null ? (
          `${origin}: the policy did not draw it`
        ) : (
          <>
            <b>{formatProbability(token.logprob)}</b> probable
            <small>
              log p {formatNumber(token.logprob)}
              {entropy !== null && `, entropy there ${formatNumber(entropy)} nats`}
            </small>
          </>
        )}
      </p>
      {top.length > 0 && <Candidates top={top} chosen={token?.id} />}
    </article>
  )
}

/** The most probable tokens at a place. */
export function Candidates({
  top,
  chosen,
}: {
  top: readonly Candidate[]
  chosen: number | undefined
}) {
  return (
    <ul class="candidates" aria-label="Most probable tokens">
      {top.map(({ id, text, logprob }) => (
        <li key={id} class={id === chosen ? 'chosen' : ''}>
          <span class="token">
            <Visible text={text} />
          </span>
          <span class="track" aria-hidden="true">
            <span style={{ width: `${Math.exp(logprob) * 100}%` }} />
          </span>
          <b>{formatProbability(logprob)}</b>
        </li>
      ))}
    </ul>
  )
}

/** Messages beside each other: those they share once, then turn by turn. */
function Aligned({
  name,
  left,
  right,
}: {
  name: string
  left: TrajectoryAnswer
  right: TrajectoryAnswer
}) {
  const same = (index: number): boolean =>
    JSON.stringify(left.messages[index]) === JSON.stringify(right.messages[index])
  const most = Math.max(left.messages.length, right.messages.length)
  let shared = 0
  while (shared < most && same(shared)) shared++
  return (
    <section class="aligned" aria-label="Both conversations">
      {left.messages.slice(0, shared).map((message, index) => (
        <MessageView key={index} message={message} />
      ))}
      <div class="two heads">
        {[left, right].map(({ id, reward, advantage, outcome }) => (
          <header key={id}>
            <a href={hrefTo(['run', name, 'trajectory'], { id })}>
              {id.split('/').slice(-2).join('/')}
            </a>
            <span>
              reward <b>{formatNumber(reward?.total)}</b>
            </span>
            <span>
              advantage <b>{formatSigned(advantage)}</b>
            </span>
            <span class="muted">{formatOutcome(outcome)}</span>
          </header>
        ))}
      </div>
      {Array.from({ length: most - shared }, (_, offset) => shared + offset).map(index => (
        <div key={index} class="two">
          {[left, right].map(({ id, messages }) => (
            <div key={id}>{messages[index] && <MessageView message={messages[index]} />}</div>
          ))}
        </div>
      ))}
    </section>
  )
}
