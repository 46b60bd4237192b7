"""The record of a call is the same for every client, except for ids and times. Reads a server's records from stdin."""

import json
import sys

OWN = {"tool_call_id", "run_id", "started_at", "ended_at"}
wanted, clients = sys.argv[1], int(sys.argv[2])
records = [json.loads(line) for line in sys.stdin]
same = [{key: value for key, value in one.items() if key not in OWN} for one in records if one["name"] == wanted and one["executed"]]
assert len(same) == clients, f"{len(same)} records of {wanted}"
assert all(one == same[0] for one in same), same
assert len({one["tool_call_id"] for one in records}) == len(records)
print(f"{len(records)} records, those of {wanted} alike for {clients} clients")
