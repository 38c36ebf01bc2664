import { useState } from 'preact/hooks'
import type { GroupAnswer, MemberRow } from '../../src/doors/view/answers.ts'
import {
  formatCount,
  formatFixed,
  formatNumber,
  formatOutcome,
  formatSeconds,
  formatSigned,
} from '../data/format.ts'
import { goTo, hrefTo } from '../data/route.ts'
import { useData } from '../data/use-data.ts'
import { Crumbs } from '../parts/crumbs.tsx'
import { Figure, Figures } from '../parts/figure.tsx'
import { Json } from '../parts/json.tsx'
import { Show } from '../parts/states.tsx'

/** One group: its task, and its members beside each other. */
export function GroupPage({ name, id }: { name: string; id: string }) {
  const group = useData(`group ${name} ${id}`, source => source.group(name, id))
  return (
    <div class="page">
      <Crumbs run={name} here={id} />
      <Show of={group} what="the group">
        {value => <Members name={name} group={value} />}
      </Show>
    </div>
  )
}

function Members({ name, group }: { name: string; group: GroupAnswer }) {
  const { row, members, previous, next } = group
  const [chosen, setChosen] = useState(() => farthest(members))
  const choose = (id: string): void =>
    setChosen(chosen.includes(id) ? chosen.filter(each => each !== id) : [...chosen, id].slice(-2))
  const compare = (): void =>
    goTo(hrefTo(['run', name, 'siblings'], { a: chosen[0], b: chosen[1] }))
  const link = (id: string | null, text: string) =>
    id === null ? (
      <span class="muted">{text}</span>
    ) : (
      <a href={hrefTo(['run', name, 'group'], { id })}>{text}</a>
    )
  return (
    <>
      <header class="title">
        <h1>{row.task}</h1>
        <p class="meta">
          {row.seat !== undefined && <span>seat {row.seat}</span>}
          {row.step !== null && <span>step {row.step}</span>}
          {row.isEvaluation && <span>held out</span>}
          <span>{row.opening}</span>
        </p>
        <nav class="beside" aria-label="Other groups">
          {link(previous, '← previous')} {link(next, 'next →')}
        </nav>
      </header>
      <Figures>
        <Figure
          value={formatNumber(row.mean)}
          label={row.seat === undefined ? 'Mean reward' : `Mean reward of ${row.seat}`}
          note={`of ${row.rewards.length} scored`}
        />
        <Figure
          value={formatNumber(row.spread)}
          label="Spread"
          note={
            row.spread === 0 && row.rewards.length > 1
              ? 'no contrast: it teaches nothing'
              : 'highest less lowest reward'
          }
        />
        <Figure
          value={formatCount(row.members)}
          label="Members"
          note={`${row.unscored} without a reward, ${row.dropped} filtered`}
        />
        <Figure
          value={formatNumber(row.tokens)}
          label="Sampled tokens"
          note="mean per trajectory"
        />
      </Figures>
      <div class="actions">
        <button type="button" class="strong" disabled={chosen.length !== 2} onClick={compare}>
          Two side by side
        </button>
        <span class="muted">
          {chosen.length === 2 ? 'The two that are ticked.' : 'Tick two members.'}
        </span>
      </div>
      <div class="scroll">
        <table class="members">
          <caption class="hidden">Members of the group</caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">Chosen</span>
              </th>
              <th scope="col">Trajectory</th>
              <th scope="col" class="number" title="Total reward">
                Reward
              </th>
              <th scope="col" title="Named parts of the reward">
                Parts
              </th>
              <th
                scope="col"
                class="number"
                title="Relative to the group; – where it is not trained on"
              >
                Advantage
              </th>
              <th scope="col">Outcome</th>
              <th scope="col" class="number">
                Turns
              </th>
              <th scope="col" class="number" title="Sampled tokens">
                Tokens
              </th>
              <th
                scope="col"
                class="number"
                title="Time of policy, tools, environment and reward together"
              >
                Time
              </th>
              <th scope="col">Last words</th>
            </tr>
          </thead>
          <tbody>
            {members.map(member => (
              <Member
                key={member.id}
                name={name}
                member={member}
                isChosen={chosen.includes(member.id)}
                onChoose={() => choose(member.id)}
              />
            ))}
          </tbody>
        </table>
      </div>
      <details>
        <summary>What the task is made of</summary>
        <Json value={group.data} />
      </details>
    </>
  )
}

/** The best and the worst member, which are compared first. */
function farthest(members: readonly MemberRow[]): readonly string[] {
  const scored = members.filter(({ reward }) => reward !== null)
  const sorted = scored.toSorted((a, b) => b.reward!.total - a.reward!.total)
  const pair = scored.length > 1 ? [sorted[0]!, sorted.at(-1)!] : members.slice(0, 2)
  return pair.map(({ id }) => id)
}

interface MemberProps {
  readonly name: string
  readonly member: MemberRow
  readonly isChosen: boolean
  readonly onChoose: () => void
}

function Member({ name, member, isChosen, onChoose }: MemberProps) {
  const { id, reward, advantage, outcome, dropped } = member
  const isBad = outcome.kind === 'failed' || outcome.kind === 'aborted'
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          checked={isChosen}
          onChange={onChoose}
          aria-label={`Compare ${id}`}
        />
      </td>
      <td>
        <a href={hrefTo(['run', name, 'trajectory'], { id })}>
          {id.split('/').slice(-2).join('/')}
        </a>
        {member.endings > 1 && (
          <a class="tag" href={hrefTo(['run', name, 'tree'], { id: member.tree })}>
            tree
          </a>
        )}
        {member.isCondensed && <span class="tag">condensed</span>}
      </td>
      <td class="number">{formatFixed(reward?.total ?? null)}</td>
      <td>
        {reward?.parts.map(part => (
          <span key={part.name} class="part" title={`weight ${part.weight}`}>
            {part.name} <b>{formatNumber(part.score)}</b>
          </span>
        ))}
      </td>
      <td class={`number ${(advantage ?? 0) < 0 ? 'bad' : ''}`}>{formatSigned(advantage)}</td>
      <td>
        <span class={isBad ? 'bad' : ''}>{formatOutcome(outcome)}</span>
        {dropped && (
          <small class="muted">
            {' '}
            filtered by {dropped.filter}: {dropped.reason}
          </small>
        )}
      </td>
      <td class="number">{member.turns}</td>
      <td class="number">{formatCount(member.sampled)}</td>
      <td class="number">{formatSeconds(member.seconds)}</td>
      <td class="words">{member.answer}</td>
    </tr>
  )
}
