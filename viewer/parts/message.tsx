import type { Content, ImagePart, Message } from '@espalier/text'
import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { CallRecord } from '../../src/base/core/tool.ts'
import { formatArguments, formatCount, formatSeconds } from '../data/format.ts'

/** The images of a conversation, as data URLs by the reference in their place. */
export const ShownImages = createContext<Readonly<Record<string, string>>>({})

interface MessageProps {
  readonly message: Message
  /** The recorded calls, to show what went wrong with one. */
  readonly calls?: readonly CallRecord[]
  readonly note?: ComponentChildren
}

/** A message as people read it. Everything in it is text: nothing in it is run or loaded. */
export function MessageView({ message, calls = [], note }: MessageProps) {
  const name =
    message.role === 'tool'
      ? (message.name ?? calls.find(({ id }) => id === message.tool_call_id)?.tool ?? 'tool')
      : message.role
  const call =
    message.role === 'tool' ? calls.find(({ id }) => id === message.tool_call_id) : undefined
  return (
    <article class={`message ${message.role}`}>
      <header>
        <b>{name}</b>
        {call?.problem !== undefined && <span class="tag bad">{call.problem}</span>}
        {call?.cut !== undefined && <span class="tag">{formatCount(call.cut)} characters cut</span>}
        {call?.isRecall && <span class="tag">recalled</span>}
        {call && <small class="muted">{formatSeconds(call.seconds)}</small>}
        {note}
      </header>
      {message.role === 'assistant' && message.reasoning_content && (
        <details class="reasoning">
          <summary>Reasoning, {formatCount(message.reasoning_content.length)} characters</summary>
          <Text text={message.reasoning_content} />
        </details>
      )}
      {message.role === 'tool' && typeof message.content === 'string' ? (
        <ToolText text={message.content} />
      ) : (
        <Body content={message.content} />
      )}
      {message.role === 'assistant' &&
        message.tool_calls?.map(({ id, function: called }) => (
          <div key={id} class="call">
            <span aria-hidden="true">→</span>
            <code>{called.name}</code>
            <pre>{shortArguments(called.arguments)}</pre>
          </div>
        ))}
    </article>
  )
}

/** Short arguments in one line, long ones indented. */
function shortArguments(text: string): string {
  const pretty = formatArguments(text)
  const line = pretty.replace(/\n\s*/g, ' ')
  return line.length <= 90 ? line : pretty
}

function Body({ content }: { content: Content | null }) {
  if (content === null || content === '') return null
  if (typeof content === 'string') return <Text text={content} />
  return (
    <>
      {content.map((part, index) =>
        part.type === 'text' ? (
          <Text key={index} text={part.text} />
        ) : (
          <Picture key={index} address={addressOf(part)} />
        ),
      )}
    </>
  )
}

function addressOf(part: ImagePart): string {
  if (part.type === 'image_url') return part.image_url.url
  return part.source.type === 'url' ? part.source.url : `${part.source.media_type} in base64`
}

/** An image where it was seen, if its bytes came along; only what browsers paint, never an address elsewhere. */
function Picture({ address }: { address: string }) {
  const source = useContext(ShownImages)[address]
  const size = /width=(\d+)&height=(\d+)/.exec(address)
  const words = size ? `image of ${size[1]} x ${size[2]} pixels` : 'image'
  if (source === undefined) {
    return size ? <p class="muted">[{words}, not loaded]</p> : <Unloaded address={address} />
  }
  return <img class="seen" src={source} alt={words} title={words} />
}

function Unloaded({ address }: { address: string }) {
  const rest = address.length > 80 ? `… ${formatCount(address.length)} characters` : ''
  return (
    <p class="muted">
      [image, not loaded: {address.slice(0, 80)}
      {rest}]
    </p>
  )
}

const longest = 6000

/** Long texts are folded behind their beginning. */
function Text({ text }: { text: string }) {
  if (text.length <= longest) return <div class="text">{text}</div>
  return (
    <>
      <div class="text">{text.slice(0, longest)}…</div>
      <details>
        <summary>{formatCount(text.length - longest)} more characters</summary>
        <div class="text">{text.slice(longest)}</div>
      </details>
    </>
  )
}

/** What a tool said: JSON is indented. */
function ToolText({ text }: { text: string }) {
  const looksLikeJson = /^\s*[[{]/.test(text)
  return <Text text={looksLikeJson ? formatArguments(text) : text} />
}
