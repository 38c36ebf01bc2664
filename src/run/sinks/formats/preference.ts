import { conversationsOf, countUntrained, withoutReasoning } from '../conversations.ts'
import type { ExportGroup, FormatOptions } from '../format.ts'
import { lineFormat } from '../line-format.ts'
import { type Pair, pairsOf } from '../pairs.ts'
import { withObjectArguments } from './supervised.ts'

/**
 * TRL's conversational preference format (TRL 1.16, docs/dataset_formats): an explicit prompt and
 * two continuations, which may have several turns with tool results between them.
 */
export const trlDpo = lineFormat({
  name: 'trl-dpo',
  summary: 'Pairs of a better and a worse continuation for preference training in TRL',
  carries: ['messages', 'tools'],
  start: options => source =>
    pairsIn(source, options).map(({ chosen, prompt, better, worse }) => ({
      prompt: prompt.map(withObjectArguments),
      chosen: better.map(withObjectArguments),
      rejected: worse.map(withObjectArguments),
      ...(chosen.tree.tools.length > 0 && { tools: chosen.tree.tools }),
    })),
  loading: file => [
    `python:  dataset = load_dataset("json", data_files=${JSON.stringify(file)}, split="train")`,
    '         trainer = DPOTrainer(model, train_dataset=dataset, args=DPOConfig())',
  ],
})

/**
 * OpenAI's preference format: each output is one reply, so pairs are cut at the first reply in which
 * they differ, and what came after it is left out.
 */
export const openaiDpo = lineFormat({
  name: 'openai-dpo',
  summary: "Pairs of a better and a worse reply for OpenAI's preference fine-tuning",
  carries: ['messages', 'tools'],
  start: options => source =>
    pairsIn(source, options).flatMap(({ chosen, prompt, better, worse }) => {
      if (JSON.stringify(better[0]) === JSON.stringify(worse[0])) {
        options.lost.add('pairs whose first difference is not a reply')
        return []
      }
      const { tools } = chosen.tree
      options.lost.add(
        'messages after the reply in which a pair differs',
        better.length + worse.length - 2,
      )
      return [
        {
          input: {
            messages: prompt.map(withoutReasoning),
            ...(tools.length > 0 && { tools, parallel_tool_calls: true }),
          },
          preferred_output: [withoutReasoning(better[0]!)],
          non_preferred_output: [withoutReasoning(worse[0]!)],
        },
      ]
    }),
  loading: file => [
    `curl https://api.openai.com/v1/files -F purpose=fine-tune -F file=@${file} -H "Authorization: Bearer $KEY"`,
  ],
})

function pairsIn({ group }: ExportGroup, options: FormatOptions): readonly Pair[] {
  const { pairs, alone } = pairsOf(conversationsOf(group, options))
  options.lost.add('trajectories without a partner of another reward', alone)
  const paired = pairs.flatMap(({ chosen, rejected }) => [chosen, rejected])
  countUntrained(paired, { lost: options.lost, trainer: 'preference training' })
  return pairs
}
