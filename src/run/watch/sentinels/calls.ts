import { textOf } from '@espalier/text'
import { isGradable } from '../../../base/core/trajectory.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type { Alarm, Sentinel, SentinelContext } from './sentinel.ts'

const enough = 24

/** What calls look like in the formats people serve, if a parser left them in the text. */
const marks = ['<tool_call', '<function', '<|tool_call', '[TOOL_CALLS]', '<｜tool', '"tool_calls"']

/** Warns if tools are offered and never called. */
export function noToolCalls(): Sentinel {
  let trajectories = 0
  let marked = 0
  let isOver = false
  return {
    name: 'no-tool-calls',
    seeTree(tree): Alarm | undefined {
      if (isOver || tree.tools.length === 0) return undefined
      for (const { calls, messages } of tree.trajectories.filter(isGradable)) {
        if (calls.length > 0) isOver = true
        trajectories++
        if (messages.some(message => message.role === 'assistant' && hasMark(message))) marked++
      }
      if (isOver || trajectories < enough) return undefined
      isOver = true
      return {
        message: `no tool was called in ${trajectories} trajectories although ${tree.tools.length} ${tree.tools.length === 1 ? 'is' : 'are'} offered`,
        likely:
          marked > 0
            ? `the parser does not know this model's format: ${marked} answers hold what looks like a call; name the format with --tool-format, or look with espalier doctor`
            : 'the chat template does not offer the tools, or the model was not trained to call them; look with espalier doctor',
      }
    },
  }
}

function hasMark({ content }: { readonly content: Parameters<typeof textOf>[0] }): boolean {
  const text = textOf(content)
  return marks.some(mark => text.includes(mark))
}

/** A model that is bad at calls still writes some readable ones; with the wrong parser hardly any are. */
const hardlyAny = 0.95

/** Warns if hardly any call can be read. Not for our embedded model, whose format is known to be right. */
export function parserMismatch({ isOurs = false }: SentinelContext): Sentinel {
  let calls = 0
  let malformed = 0
  let left = 0
  let trajectories = 0
  let isOver = isOurs
  return {
    name: 'parser-mismatch',
    seeTree(tree): Alarm | undefined {
      if (isOver) return undefined
      for (const trajectory of tree.trajectories) {
        trajectories++
        calls += trajectory.calls.length
        malformed += trajectory.calls.filter(call => call.problem === 'malformed-call').length
        // An opening may show calls as examples: only the last so many are the policy's own.
        const spoken = trajectory.messages.filter(({ role }) => role === 'assistant')
        const own = trajectory.turns.length === 0 ? [] : spoken.slice(-trajectory.turns.length)
        const hasLeft = own.some(hasMark)
        if (hasLeft && trajectory.calls.length > 0) left++
      }
      const isBroken = calls >= enough && malformed > calls * hardlyAny
      const isLeaky = trajectories >= enough && left > trajectories / 2
      if (!isBroken && !isLeaky) return undefined
      isOver = true
      return {
        message: isBroken
          ? `${malformed} of ${calls} calls could not be read`
          : `${left} of ${trajectories} answers still hold the marks of calls in their text`,
        likely:
          'the parser reads another format than the model writes: set --tool-format, or look with espalier doctor',
      }
    },
  }
}

/** Whether an output is suspicious if repeated: short answers such as `done` are not, errors are. */
function isTelling(output: string): boolean {
  return output.length > 80 || complaint.test(output)
}

const complaint =
  /error|fail|exception|refused|denied|unavailable|timed? ?out|cannot|can't|could not|not found|unknown|invalid|no connection|unauthori[sz]ed|forbidden/i

/** Warns if a tool gives the same error or the same text, whatever it is asked. */
export function constantObservations(): Sentinel {
  const tools = new Map<string, { calls: number; output: string; inputs: Set<string> } | 'varied'>()
  return {
    name: 'constant-observations',
    seeTree(tree): Alarm | undefined {
      for (const { tool, input, output, problem } of callsOf(tree)) {
        if (problem === 'unknown-tool' || problem === 'malformed-call') continue
        const seen = tools.get(tool) ?? { calls: 0, output, inputs: new Set<string>() }
        if (seen === 'varied') continue
        if (seen.output !== output || tools.size > 1000) {
          tools.set(tool, 'varied')
          continue
        }
        seen.calls++
        if (seen.inputs.size < enough) seen.inputs.add(JSON.stringify(input))
        tools.set(tool, seen)
        if (seen.calls < 2 * enough || seen.inputs.size < 8) continue
        tools.set(tool, 'varied')
        if (!isTelling(output)) continue
        return {
          message: `tool "${tool}" answered all ${seen.calls} calls, with ${seen.inputs.size} different inputs, with ${JSON.stringify(output.slice(0, 80))}`,
          likely:
            'it is broken, cannot reach what it asks, or ignores its input: call it yourself, and try the environment with espalier check',
        }
      }
      return undefined
    },
  }
}

/** Warns if a tool throws every time that it is called. */
export function throwingTool(): Sentinel {
  const tools = new Map<string, number | 'works'>()
  return {
    name: 'throwing-tool',
    seeTree(tree): Alarm | undefined {
      for (const { tool, problem, output } of callsOf(tree)) {
        const thrown = tools.get(tool) ?? 0
        if (thrown === 'works' || problem === 'unknown-tool' || problem === 'malformed-call') {
          continue
        }
        tools.set(tool, problem === 'thrown' ? thrown + 1 : 'works')
        if (problem !== 'thrown' || thrown + 1 < enough) continue
        tools.set(tool, 'works')
        return {
          message: `tool "${tool}" threw in all of its ${thrown + 1} calls: ${JSON.stringify(output.slice(0, 80))}`,
          likely:
            'the tool has a mistake, or lacks what it needs: call it yourself, or try espalier check',
        }
      }
      return undefined
    },
  }
}

function callsOf(tree: Tree) {
  return tree.trajectories.flatMap(trajectory => trajectory.calls)
}
