import type { TrajectoryAnswer } from '../../src/doors/view/trajectory-shapes.ts'
import {
  formatCount,
  formatNumber,
  formatOutcome,
  formatSeconds,
  formatSigned,
} from '../data/format.ts'
import { Bars } from './figure.tsx'

/** A trajectory's reward, outcome, cost and fidelity. */
export function TrajectoryFacts({ trajectory }: { trajectory: TrajectoryAnswer }) {
  const { reward, advantage, weight, dropped, outcome, usage, volatile, events, sampling } =
    trajectory
  const seconds = Object.entries(volatile.seconds).filter(([, value]) => value > 0)
  return (
    <aside class="facts" aria-label="Facts">
      <section>
        <h2>{trajectory.seat === undefined ? 'Reward' : `Reward of ${trajectory.seat}`}</h2>
        <p class="big">{reward ? formatNumber(reward.total) : 'none'}</p>
        {reward && reward.parts.length > 0 && (
          <dl class="pairs">
            {reward.parts.map(({ name, score, weight: of }) => (
              <Pair
                key={name}
                name={of === 0 ? `${name} (not counted)` : `${name} × ${formatNumber(of)}`}
                value={formatNumber(score)}
              />
            ))}
          </dl>
        )}
        <dl class="pairs">
          <Pair name="advantage" value={formatSigned(advantage, 3)} />
          <Pair name="weight" value={formatNumber(weight)} />
          {trajectory.share !== 1 && (
            <Pair name="share of its tree" value={formatNumber(trajectory.share)} />
          )}
        </dl>
        {dropped && (
          <p class="bad">
            Filtered by {dropped.filter}: {dropped.reason}
          </p>
        )}
      </section>
      <section>
        <h2>Outcome</h2>
        <p>{formatOutcome(outcome)}</p>
        {outcome.kind === 'failed' && <p class="bad">{outcome.message}</p>}
      </section>
      <section>
        <h2>Tokens</h2>
        <dl class="pairs">
          <Pair name="sampled" value={formatCount(usage.sampled)} />
          <Pair name="prompt, over all turns" value={formatCount(usage.prompt)} />
          <Pair name="of them cached" value={formatCount(volatile.cached)} />
        </dl>
      </section>
      {seconds.length > 0 && (
        <section>
          <h2>Time by lane</h2>
          <Bars items={seconds} format={formatSeconds} />
        </section>
      )}
      <Fidelity trajectory={trajectory} />
      {events.length > 0 && (
        <section>
          <h2>What happened</h2>
          <ul class="events">
            {events.slice(0, 60).map(({ kind, turn, detail }, index) => (
              <li key={index}>
                <b>{kind}</b> <small>turn {turn}</small>
                <p>{detail}</p>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h2>Sampling</h2>
        <dl class="pairs">
          <Pair name="temperature" value={formatNumber(sampling.temperature)} />
          <Pair name="top-p" value={formatNumber(sampling.topP)} />
          <Pair name="top-k" value={sampling.topK === 0 ? 'off' : formatCount(sampling.topK)} />
          <Pair name="seed" value={String(trajectory.seed)} />
        </dl>
      </section>
    </aside>
  )
}

function Pair({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

const meanings = {
  exact: 'Every token is the one the policy saw or sampled.',
  forked:
    'Every token is the one the policy saw or sampled; what rewrote the context began a new path.',
  're-encoded':
    'The server gave no ids: tokens were made anew from the text and may differ from what was sampled.',
} as const

/** Whether the tokens are exact, and why there are several paths. */
function Fidelity({ trajectory: { fidelity, paths } }: { trajectory: TrajectoryAnswer }) {
  return (
    <section>
      <h2>Fidelity</h2>
      <p>
        <b>{fidelity.kind}</b>
      </p>
      <p class="muted">{meanings[fidelity.kind]}</p>
      {fidelity.forks.length > 0 && (
        <ol class="forks">
          {fidelity.forks.map(({ at, reason }, index) => (
            <li key={index}>
              <b>
                path {index + 1} → {index + 2}
              </b>{' '}
              at token {formatCount(at)}
              <p>{reason}</p>
              {paths[index + 1]?.rewrite && (
                <small>
                  by {paths[index + 1]!.rewrite!.by}; the new path has{' '}
                  {formatCount(paths[index + 1]!.tokens)} tokens
                </small>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}
