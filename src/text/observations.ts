import type { Message } from '../core/message.ts'
import type { Profile } from './calibration.ts'
import { type CallEnding, markOf } from './ending.ts'
import {
  after,
  again,
  asked,
  callingTurn,
  callsOf,
  contentMark,
  type Probe,
  probeResult,
  spokenTurn,
} from './probe.ts'

/** How several tool results in a row are written; `unsupported` where not even one is. */
export function groupingOf(probe: Probe, { mark }: CallEnding): Profile['toolResults'] {
  const [first, last] = [probeResult(1), probeResult()]
  const render = (results: readonly (typeof first)[]): string | Error =>
    probe.text([asked, callingTurn(callsOf(results), mark), ...results], { tools: true })
  const one = after(render([last]), last.content)
  if (one === undefined) return 'unsupported'
  const two = render([first, last])
  const between = after(two, first.content)
  if (between === undefined || !between.includes(last.content)) return 'single'
  return between.startsWith(one) ? 'separate' : 'grouped'
}

/** Whether the text between two turns changes with the tools on offer, or with what came earlier. */
export function findBridgeNeeds(
  probe: Probe,
  found: { readonly called: CallEnding | undefined; readonly needsTools: boolean },
): Profile['bridgeNeeds'] {
  const mark = found.called?.mark ?? 'last'
  const calling = (index: number): readonly Message[] => {
    const result = probeResult(index)
    return [callingTurn(callsOf([result]), mark), result]
  }
  const ways: readonly Way[] = [
    { turn: [spokenTurn, again], earlier: [spokenTurn, again], mark: contentMark },
    ...(found.called ? [{ turn: calling(0), earlier: calling(1), mark: markOf(mark) }] : []),
  ]
  const tools = ways.some(
    way => bridgeAfter(probe, way, { tools: true }) !== bridgeAfter(probe, way, { tools: false }),
  )
  const history = ways.some(way => {
    const usual = bridgeAfter(probe, way, { tools: true })
    const later = bridgeAfter(probe, way, { tools: true, isLater: true })
    return usual !== undefined && later !== undefined && usual !== later
  })
  return { tools: found.needsTools || tools, history }
}

interface Way {
  readonly turn: readonly Message[]
  /** A turn of the same kind that may come before it. */
  readonly earlier: readonly Message[]
  readonly mark: string
}

function bridgeAfter(
  probe: Probe,
  { turn, earlier, mark }: Way,
  { tools, isLater = false }: { tools: boolean; isLater?: boolean },
): string | undefined {
  const messages = [asked, ...(isLater ? earlier : []), ...turn]
  const text = probe.text(messages, { opens: true, tools })
  if (typeof text !== 'string') return undefined
  const at = text.lastIndexOf(mark)
  return at < 0 ? undefined : text.slice(at + mark.length)
}
