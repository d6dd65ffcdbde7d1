/** What one request may ask of us. A payment needs a small part of each. */
export const API_LIMITS = {
  body_size_max_bytes: 65_536,
  /** What the processor tells at once; an intent with all that is expanded in it stays far below. */
  gateway_webhook_max_bytes: 1_048_576,
  /** All of it, as JSON: room for twenty texts of 500 ASCII characters and their names. */
  metadata_max_bytes: 12_288,
  json_depth_max: 16,
  json_members_max: 1_000,
  /** Keys, of which each character may be written as three. */
  path_parameter_length_max: 765,
  /** How often text is read as percent-encoded when card numbers are looked for: an address inside of an address in a third one. */
  percent_decoded_times_max: 3,
  /** How much of a name that the client sent is repeated to it. */
  name_shown_length_max: 100,
  /** Waiting for the head and the body of a request: a client that trickles them keeps no connection for ever. */
  request_timeout_ms: 30_000,
  /** How long /readyz waits for the database, and how long its answer is told again without asking. */
  ready_max_ms: 2_000,
  ready_kept_ms: 1_000,
  /** Addresses whose tries without a credential are counted; the one that was used least lately is forgotten. */
  stranger_addresses_max: 10_000,
  page_default: 20,
  page_max: 100,
  cursor_length_max: 400,
} as const
