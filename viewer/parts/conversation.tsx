import type { View } from '../../src/base/core/trajectory.ts'
import type { TrajectoryAnswer, TurnAnswer } from '../../src/doors/view/trajectory-shapes.ts'
import { formatCount, formatNumber, formatOutcome, formatSigned } from '../data/format.ts'
import { hrefTo } from '../data/route.ts'
import { MessageView, ShownImages } from './message.tsx'
import { Screenshot } from './screenshot.tsx'

/** The conversation in order, and what the policy was shown instead, if that differs. */
export function Conversation({ name, trajectory }: { name: string; trajectory: TrajectoryAnswer }) {
  const { messages, turns, views, calls, outcome, id } = trajectory
  const turnAt = new Map(turns.map((turn, index) => [turn.messages, { turn, index }]))
  return (
    <ShownImages.Provider value={trajectory.images ?? {}}>
      <div class="conversation">
        {messages.map((message, index) => {
          const found = message.role === 'assistant' ? turnAt.get(index) : undefined
          const shown = found && views.find(view => view.turn === found.index)
          return (
            <div key={index}>
              {found && <Screenshot report={trajectory.report} turn={found.index - 1} />}
              {shown && <Shown view={shown} before={index} />}
              <MessageView
                message={message}
                calls={calls}
                note={
                  found && <TurnNote name={name} id={id} number={found.index} turn={found.turn} />
                }
              />
            </div>
          )
        })}
        <Screenshot report={trajectory.report} turn={turns.length - 1} />
        <p class={`ending ${outcome.kind}`}>
          {formatOutcome(outcome)}
          {outcome.kind === 'failed' && <span>{outcome.message}</span>}
        </p>
      </div>
    </ShownImages.Provider>
  )
}

interface TurnNoteProps {
  readonly name: string
  readonly id: string
  readonly number: number
  readonly turn: TurnAnswer
}

/** The facts of a turn, and links to continue from it. */
function TurnNote({ name, id, number, turn }: TurnNoteProps) {
  const { start, end, path, advantage, meanLogprob, version, finish } = turn
  return (
    <span class="turn">
      <small>
        turn {number} · {formatCount(end - start)} tokens
        {meanLogprob !== null && ` · mean log p ${formatNumber(meanLogprob)}`}
        {advantage !== null && ` · advantage ${formatSigned(advantage)}`}
        {` · version ${version[0] === version[1] ? version[0] : `${version[0]} to ${version[1]}`}`}
        {finish.kind !== 'stop' &&
          ` · ended by ${finish.kind === 'guard' ? `guard ${finish.guard}` : finish.kind}`}
      </small>
      <a href={hrefTo(['run', name, 'trajectory'], { id, view: 'tokens', path, token: start })}>
        tokens
      </a>
      <a href={hrefTo(['run', name, 'try'], { id, at: number })}>try from here</a>
    </span>
  )
}

/** The conversations that the policy was shown before its task. */
function Examples({ messages }: { messages: View['shown'] }) {
  return (
    <details class="shown">
      <summary>
        Before its task the policy was shown {formatCount(messages.length)} messages of examples
      </summary>
      {messages.map((message, index) => (
        <MessageView key={index} message={message} />
      ))}
    </details>
  )
}

/** What the policy saw instead of the conversation. */
function Shown({ view, before }: { view: View; before: number }) {
  const { by, shown, from, examples } = view
  if (examples) return <Examples messages={shown.slice(examples.start, examples.end)} />
  return (
    <details class="shown">
      <summary>
        From here on the policy saw this instead of the first {formatCount(from)} of{' '}
        {formatCount(before)} messages ({by})
      </summary>
      {shown.map((message, index) => (
        <MessageView key={index} message={message} />
      ))}
    </details>
  )
}
