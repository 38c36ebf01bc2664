import type { ModelRenderer } from '../../dist/tokens.js'
import { sglangAnswer } from '../fixed-server.ts'

/** What the policy of the rollout lines says in every turn. */
const words = 'I need to look at the table again before I can say anything.'
const args = '{"key": "pears"}'

/** The answer of an OpenAI chat server. */
export const chatAnswer = {
  id: 'bench',
  object: 'chat.completion',
  created: 1,
  model: 'bench',
  choices: [
    {
      index: 0,
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        content: words,
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'look_up', arguments: args } },
        ],
      },
    },
  ],
  usage: { prompt_tokens: 300, completion_tokens: 64, total_tokens: 364 },
}

/** The tokens of the same answer. */
function answerIds({ tokenizer }: ModelRenderer): readonly number[] {
  const call = `<tool_call>\n{"name": "look_up", "arguments": ${args}}\n</tool_call><|im_end|>`
  return [...tokenizer.encode(`${words}\n${call}`)]
}

/** The answer of vLLM's completions with token ids. */
export function completionsAnswer(renderer: ModelRenderer): object {
  const ids = answerIds(renderer)
  return {
    id: 'bench',
    object: 'text_completion',
    created: 1,
    model: 'bench',
    choices: [
      {
        index: 0,
        text: '',
        finish_reason: 'stop',
        stop_reason: null,
        token_ids: ids,
        logprobs: {
          text_offset: ids.map((_, index) => index),
          token_logprobs: ids.map((_, index) => -0.1234567 - index / 1000),
          tokens: ids.map(id => `token_id:${id}`),
          top_logprobs: ids.map(id => ({ [`token_id:${id}`]: -0.1234567 })),
        },
      },
    ],
    usage: { prompt_tokens: 300, completion_tokens: ids.length, total_tokens: 300 + ids.length },
  }
}

/** The answer of SGLang's `/generate`. */
export function generateAnswer(renderer: ModelRenderer): ReturnType<typeof sglangAnswer> {
  return sglangAnswer(answerIds(renderer))
}

/** What the agent of tau-bench says in every turn; slime reads the text, and we the tokens. */
export function tauAnswer({ tokenizer }: ModelRenderer): object {
  // With a thought, the template does not rewrite the turn when the next one comes.
  const text = `<think>\nI should look that up.\n</think>\n\nLet me look.\n<tool_call>
{"name": "find_user_id_by_name_zip", "arguments": {"first_name": "Yusuf", "last_name": "Rossi", "zip": "19122"}}
</tool_call><|im_end|>`
  return sglangAnswer([...tokenizer.encode(text)], text)
}
