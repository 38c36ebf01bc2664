const tool = (name: string, properties: object): object => ({
  type: 'function',
  function: {
    name,
    description: `Calls ${name} for the customer's order.`,
    parameters: { type: 'object', properties, required: Object.keys(properties).slice(0, 1) },
  },
})

const call = (id: string, name: string, input: object): object => ({
  id,
  type: 'function',
  function: { name, arguments: input },
})

/** Seven messages with tools, as one turn of an agent sees them. */
export const conversation = {
  messages: [
    { role: 'system', content: 'You are a helpful assistant of a shop. Be brief and exact.' },
    { role: 'user', content: 'Where is my order #W2520? It was due yesterday.' },
    {
      role: 'assistant',
      content: '',
      reasoning_content: 'I should look the order up first.',
      tool_calls: [call('abcdefgh1', 'get_order', { order_id: '#W2520', verbose: true })],
    },
    {
      role: 'tool',
      tool_call_id: 'abcdefgh1',
      name: 'get_order',
      content: '{"status": "in transit", "total": 34.03, "carrier": "UPS"}',
    },
    { role: 'assistant', content: 'It is in transit with UPS.', reasoning_content: 'Found it.' },
    { role: 'user', content: 'Then cancel it, please.' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [call('abcdefgh2', 'cancel_order', { order_id: '#W2520', reason: 'too late' })],
    },
  ],
  tools: [
    tool('get_order', {
      order_id: { type: 'string', description: 'The id of the order.' },
      verbose: { type: 'boolean', description: 'Whether to give every detail.' },
    }),
    tool('cancel_order', {
      order_id: { type: 'string', description: 'The id of the order.' },
      reason: { type: 'string', enum: ['too late', 'no longer needed'] },
    }),
  ],
  add_generation_prompt: true,
  bos_token: '<s>',
  eos_token: '<|im_end|>',
}
