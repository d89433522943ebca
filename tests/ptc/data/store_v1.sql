PRAGMA application_id=1347699538;
BEGIN TRANSACTION;
CREATE TABLE run_store (version INTEGER NOT NULL) STRICT;
INSERT INTO "run_store" VALUES(1);
CREATE TABLE runs (
    run TEXT PRIMARY KEY, status TEXT NOT NULL, epoch INTEGER NOT NULL, holder TEXT, expires INTEGER NOT NULL,
    created INTEGER NOT NULL, updated INTEGER NOT NULL, labels TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "runs" VALUES('r1','paused',1,NULL,1796058767711500,1796058737711500,1796058737747274,'{}');
CREATE TABLE steps (
    run TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "steps" VALUES('r1',1,1796058737711485,'start','{"model":"m","mode":"stateless","input":[{"type":"message","role":"user","content":"go"}],"previous_response_id":null,"conversation_id":null}');
INSERT INTO "steps" VALUES('r1',2,1796058737737434,'sent','{"request":1,"attempt":1,"offered":{"names":["look","note","drop"],"hosted_tool":false}}');
INSERT INTO "steps" VALUES('r1',3,1796058737738343,'received','{"request":1,"response":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"},{"type":"function_call","id":"fc_a","call_id":"a","name":"look","arguments":"{\"x\": 1}"},{"type":"function_call","id":"fc_b","call_id":"b","name":"drop","arguments":"{\"x\": 1}"},{"type":"function_call","id":"fc_c","call_id":"c","name":"note","arguments":"{\"x\": 1}"}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}},"programs":null}');
INSERT INTO "steps" VALUES('r1',4,1796058737743805,'asked','{"request":{"call_id":"b","namespace":null,"name":"drop","arguments":{"x":1},"program":null,"reason":"the tool asks for an approval","requested_us":1796058737743764,"expires_us":null}}');
INSERT INTO "steps" VALUES('r1',5,1796058737744564,'contract','{"token":"sha256:7608c34cc8b3e07e96de6df3300ef6371daafc62328e639e1f5af7ece0474134","contract":{"name":"look","description":"Look.","effects":"read","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"output_schema":{"type":"integer"},"accepted":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"allowed_callers":["direct"]}}');
INSERT INTO "steps" VALUES('r1',6,1796058737744564,'admitted','{"key":"ptc-1df6b817ce26bbe54077c45b0cec44db0105ea9a","attempt":1,"call_id":"a","namespace":null,"name":"look","given":"{\"x\": 1}","arguments":{"x":1},"program":null,"line":null,"request":1,"contract":"sha256:7608c34cc8b3e07e96de6df3300ef6371daafc62328e639e1f5af7ece0474134"}');
INSERT INTO "steps" VALUES('r1',7,1796058737744659,'contract','{"token":"sha256:6770784c6befdbcc89f3d94310a0356d72dac32a04a85432037a6a58f34a1527","contract":{"name":"note","description":"A mutation that is not idempotent.","effects":"write","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"output_schema":{"type":"integer"},"accepted":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"allowed_callers":["direct"]}}');
INSERT INTO "steps" VALUES('r1',8,1796058737744659,'admitted','{"key":"ptc-dfebdfd61bf976a3c5a0d5bd0bb0d864f9d98180","attempt":1,"call_id":"c","namespace":null,"name":"note","given":"{\"x\": 1}","arguments":{"x":1},"program":null,"line":null,"request":1,"contract":"sha256:6770784c6befdbcc89f3d94310a0356d72dac32a04a85432037a6a58f34a1527"}');
INSERT INTO "steps" VALUES('r1',9,1796058737746013,'outcome','{"key":"ptc-1df6b817ce26bbe54077c45b0cec44db0105ea9a","outcome":{"status":"success","value":1},"settled":true}');
INSERT INTO "steps" VALUES('r1',10,1796058737746463,'outcome','{"key":"ptc-dfebdfd61bf976a3c5a0d5bd0bb0d864f9d98180","outcome":{"status":"success","value":3},"settled":true}');
INSERT INTO "steps" VALUES('r1',11,1796058737747197,'answered','{"request":1,"calls":[["a",{"type":"function_call_output","call_id":"a","output":"1"},{"status":"success","value":1}],["c",{"type":"function_call_output","call_id":"c","output":"3"},{"status":"success","value":3}]]}');
INSERT INTO "steps" VALUES('r1',12,1796058737747197,'ended','{"status":"paused"}');
COMMIT;
