import { z } from 'zod'
import { isExactAnswer } from '../../../base/core/answer.ts'
import type { Environment } from '../../../base/core/environment.ts'
import { environment } from '../environment.ts'
import { lateSchema } from '../late.ts'
import type { OfferedTool } from '../tools/tool.ts'
import { openingOf, promptFields } from './prompt-task.ts'

function makeSchema() {
  const { messages, answer } = promptFields()
  return z.object({
    messages: messages.unwrap(),
    answer,
    /** The tools as they were offered. */
    tools: z
      .array(
        z.object({
          type: z.literal('function'),
          function: z.object({
            name: z.string().min(1),
            description: z.string().exactOptional(),
            parameters: z.record(z.string(), z.unknown()),
          }),
        }),
      )
      .default([]),
    /** What was called with which input, and what came back, in the order of then. */
    calls: z
      .array(z.object({ name: z.string(), input: z.unknown(), output: z.string() }))
      .default([]),
  })
}

/** Task data of `recorded`: a conversation of the past, cut where the policy goes on. */
export type RecordedTask = z.output<ReturnType<typeof makeSchema>>

interface RecordedReport {
  /** The first call whose result nobody has seen; it ended the attempt. */
  readonly unseen: { readonly name: string; readonly input: unknown } | null
}

const unseenText = 'This call was never made when the conversation was recorded; it ends here.'

/**
 * A world that was recorded: calls that were made then get the results that were seen then, one after the other if
 * a call was made several times. A call that was never made ends the attempt.
 */
export function recordedWorld(): Environment<RecordedTask> {
  return environment({
    name: 'recorded',
    task: lateSchema(makeSchema),
    open({ data }) {
      const seen = resultsOf(data)
      let unseen: RecordedReport['unseen'] = null
      const answer = (name: string, input: unknown): string => {
        const results = seen.get(keyOf(name, input)) ?? []
        const result = results.length > 1 ? results.shift() : results[0]
        if (result === undefined) unseen ??= { name, input }
        return result ?? unseenText
      }
      const tools = data.tools.map(({ function: { name, description, parameters } }) => [
        name,
        offered({ description, parameters }, input => answer(name, input)),
      ])
      return {
        opening: openingOf(data),
        tools: Object.fromEntries(tools),
        isOver: () => unseen !== null,
        report: (): RecordedReport => ({ unseen }),
      }
    },
    reward: {
      right: ({ task: { data }, answer }) =>
        Number(data.answer !== undefined && isExactAnswer(answer, data)),
      seen: { weight: 0, score: ({ report }) => Number(report.unseen === null) },
    },
  })
}

/** A tool that shows its old schema and takes any input: what it refused then is among its results. */
function offered(
  {
    description,
    parameters,
  }: Pick<RecordedTask['tools'][number]['function'], 'parameters'> & {
    readonly description: string | undefined
  },
  execute: (input: unknown) => string,
): OfferedTool {
  const inputSchema = {
    jsonSchema: parameters,
    validate: (value: unknown) => ({ success: true, value }),
  }
  return { ...(description !== undefined && { description }), inputSchema, execute }
}

function resultsOf({ calls }: RecordedTask): Map<string, string[]> {
  const results = new Map<string, string[]>()
  for (const { name, input, output } of calls) {
    const key = keyOf(name, input)
    const before = results.get(key)
    if (before) before.push(output)
    else results.set(key, [output])
  }
  return results
}

/** The key of a call: equal for inputs that differ only in the order of their fields. */
function keyOf(name: string, input: unknown): string {
  return JSON.stringify([name, input], (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
