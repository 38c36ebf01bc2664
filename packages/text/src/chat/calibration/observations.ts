import type { AssistantMessage, Message, ToolMessage } from '../../message.ts'
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
  withoutThought,
} from './probe.ts'

/** How several tool results in a row are written; `unsupported` if not even one is. */
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
  const ways = waysOf(found.called)
  const tools = ways.some(
    way => bridgeAfter(probe, way, { tools: true }) !== bridgeAfter(probe, way, { tools: false }),
  )
  const history = ways.some(way => {
    const usual = bridgeAfter(probe, way, { tools: true })
    return way.beginnings.some(beginning => {
      const later = bridgeAfter(probe, way, { tools: true, beginning })
      if (usual === undefined || later === undefined || usual === later) return false
      return isAppended(probe, way, beginning)
    })
  })
  return { tools: found.needsTools || tools, history }
}

/** A turn and what is observed upon it. */
interface Way {
  readonly turn: AssistantMessage
  readonly observed: readonly Message[]
  readonly mark: string
  /** What may stand before it instead of a plain question. */
  readonly beginnings: readonly (readonly Message[])[]
}

const instructed: readonly Message[] = [{ role: 'system', content: 'Be brief.' }, asked]

function waysOf(called: CallEnding | undefined): readonly Way[] {
  const spoken: Way = {
    turn: spokenTurn,
    observed: [again],
    mark: contentMark,
    beginnings: [[asked, spokenTurn, again], instructed],
  }
  if (!called) return [spoken]
  const wayTo = (observed: readonly ToolMessage[], earlier: ToolMessage): Way => ({
    turn: callingTurn(callsOf(observed), called.mark),
    observed,
    mark: markOf(called.mark),
    beginnings: [[asked, callingTurn(callsOf([earlier]), called.mark), earlier], instructed],
  })
  const [first, second, third] = [probeResult(), probeResult(1), probeResult(2)]
  return [spoken, wayTo([first], second), wayTo([second, first], third)]
}

function bridgeAfter(
  probe: Probe,
  { turn, observed, mark }: Way,
  { tools, beginning = [asked] }: { tools: boolean; beginning?: readonly Message[] },
): string | undefined {
  const text = probe.text([...beginning, turn, ...observed], { opens: true, tools })
  if (typeof text !== 'string') return undefined
  const at = text.lastIndexOf(mark)
  return at < 0 ? undefined : text.slice(at + mark.length)
}

/** Whether the template only appends here, so that what it appends is worth being exact about. */
function isAppended(
  probe: Probe,
  { turn: thinking, observed }: Way,
  beginning: readonly Message[],
): boolean {
  return [thinking, withoutThought(thinking)].some(turn => {
    const prompt = probe.text(beginning, { opens: true, tools: true })
    const said = probe.text([...beginning, turn], { tools: true })
    const now = probe.text([...beginning, turn, ...observed], { opens: true, tools: true })
    if (typeof prompt !== 'string' || typeof said !== 'string' || typeof now !== 'string') {
      return false
    }
    return said.startsWith(prompt) && now.startsWith(said.trimEnd())
  })
}
